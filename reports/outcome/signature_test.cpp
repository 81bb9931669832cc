#include "reports/outcome/signature.h"

#include <gtest/gtest.h>

namespace graphproof::reports {
namespace {

record::Record failure(const char* verdict, const char* check, const char* what,
                       const char* got = "1") {
  record::Record record;
  record.observed = *record::Verdict::from(verdict);
  record.failing = {{check, 0, {what, got, "none", "", "look"}}};
  return record;
}

TEST(SignatureTest, StepsRanksAndTensorsDoNotDistinguishFailures) {
  const Signature left = signature(failure(
      "fail.numerics", "D01.lockstep", "`lockstep`: lockstep_graph differs at step 3 of rank 12"));
  EXPECT_EQ(left, signature(failure("fail.numerics", "D01.lockstep",
                                    "`losses`: lockstep_graph differs at step 14 of rank 0")));
  EXPECT_EQ(to_text(left),
            "fail.numerics  D01.lockstep  `_`: lockstep_graph differs at step # of rank #");
}

TEST(SignatureTest, VerdictCheckAndErrorDo) {
  const record::Record rows[] = {
      failure("fail.numerics", "D01.lockstep", "a step differs"),
      failure("fail.not_replayed", "D01.lockstep", "a step differs"),
      failure("fail.numerics", "D12.kept_losses", "a step differs"),
      failure("fail.numerics", "D01.lockstep", "a loss differs"),
      failure("fail.capture", "", "rank 0 met an error",
              "cuda 900 from aten::item: not permitted while capturing"),
      failure("fail.capture", "", "rank 0 met an error",
              "cuda 901 from aten::item: capture was invalidated"),
      failure("fail.capture", "", "rank 0 met an error",
              "exception 0 from aten::bernoulli_: no generator"),
  };
  for (const record::Record& left : rows)
    for (const record::Record& right : rows)
      EXPECT_EQ(signature(left) == signature(right), &left == &right);
  EXPECT_EQ(signature(rows[4]).what, "rank # met an error; cuda 900 from aten::item");
}

TEST(SignatureTest, AFailureThatNamesNothingHasItsVerdict) {
  record::Record record;
  record.observed = *record::Verdict::from("fail.silent");
  EXPECT_EQ(to_text(signature(record)), "fail.silent");
}

}  // namespace
}  // namespace graphproof::reports

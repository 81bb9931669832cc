#include <gtest/gtest.h>

#include "suites/checks/testing/check_rows.h"

namespace graphproof::checks {
namespace {

const nlohmann::json kAxes = {{"impl", "full_iteration"}, {"tp", 2}};

TEST(Races, Rows) {
  const Where line{.rank = 1, .kind = "races"};
  judge_rows(
      "D56.races", kAxes,
      {
          {.name = "a wait that is missing (M165)",
           .change =
               [=](Attempt& a) {
                 set(a, line, "count", 2);
                 set(a, line, "found",
                     {"aten::index reads 64 bytes on stream 1 that aten::copy_ writes on stream "
                      "2"});
               },
           .rank = 1,
           .mentions = {"accesses the same bytes", "got 2 races",
                        "aten::copy_ writes on stream 2"}},
          {.name = "no access was inspected",
           .change = [=](Attempt& a) { set(a, line, "accesses", 0); },
           .rank = 1,
           .mentions = {"`races` line with inspected accesses"}},
          {.name = "absent",
           .change = [=](Attempt& a) { erase(a, line); },
           .rank = 1,
           .mentions = {"`races` line"}},
      });
}

TEST(Races, AGpuCannotTell) {
  EXPECT_EQ(record::name(judge_one(
                             "D56.races", kAxes, [](Attempt&) {}, "cuda")
                             .result),
            "not_applicable");
}

TEST(Races, EagerCasesAreAskedToo) {
  const record::CheckResult result = judge_one("D56.races", {{"impl", "none"}}, [](Attempt& a) {
    set(a, {.rank = 0, .kind = "races"}, "count", 1);
  });
  EXPECT_EQ(result.result, record::Result::fail);
}

}  // namespace
}  // namespace graphproof::checks

#include <gtest/gtest.h>

#include "suites/checks/testing/check_rows.h"

namespace graphproof::checks {
namespace {

TEST(FailedCaptureLeavesNothing, JudgesOnlyWhatFailedAndWasTakenBack) {
  EXPECT_EQ(judge_one("D33.failed_capture_leaves_nothing", kTwoRanks, [](Attempt&) {}).result,
            record::Result::not_applicable);
  const auto failed = [](std::int64_t bytes) {
    return [bytes](Attempt& a) {
      for (const int rank : {0, 1})
        add(a, rank,
            {{"kind", "failed_capture"},
             {"arm", "lockstep_graph"},
             {"graph", "training"},
             {"code", 900},
             {"site", "aten::item"},
             {"message", "m"},
             {"pool_bytes", rank * bytes}});
    };
  };
  EXPECT_EQ(judge_one("D33.failed_capture_leaves_nothing", kTwoRanks, failed(0)).result,
            record::Result::pass);
  const auto left = judge_one("D33.failed_capture_leaves_nothing", kTwoRanks, failed(2097152));
  EXPECT_EQ(left.result, record::Result::fail);
  EXPECT_EQ(left.rank, 1);
  EXPECT_EQ(left.message.what, "a failed capture in arm lockstep_graph left memory in its pool");
  EXPECT_EQ(left.message.got, "2097152 bytes after reset and empty_cache, code 900");
  if (left.result == record::Result::fail)
    RecordProperty("D33.failed_capture_leaves_nothing",
                   "fails");  // a clean attempt has none, so no row
}

}  // namespace
}  // namespace graphproof::checks

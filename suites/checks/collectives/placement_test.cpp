#include <gtest/gtest.h>

#include "suites/checks/testing/check_rows.h"

namespace graphproof::checks {
namespace {

using nlohmann::json;
using record::Result;

constexpr const char* kPlacementCheck = "D28.placement";

json with(const char* placement, const char* allocator = "expandable") {
  return {{"impl", "manual"},          {"dp", 2},
          {"model", "collective"},     {"collective", "all_gather"},
          {"collective_bytes", 65536}, {"allocator", allocator},
          {"placement", placement}};
}

TEST(Placement, ABufferThatLiesElsewhereThanAskedFailsIt) {
  const Where one{.rank = 1, .kind = "placement", .arm = "lockstep_graph"};
  judge_rows(kPlacementCheck, with("symmetric"),
             {
                 {"another offset",
                  [one](Attempt& attempt) { set(attempt, one, "offset", 4096); },
                  Result::fail,
                  1,
                  {"the input of arm lockstep_graph does not lie as placement symmetric asks",
                   "offset 4096 of a span of 20971520 bytes; rank 0: offset 0",
                   "the same offset on every rank, in one piece"}},
                 {"across a border",
                  [one](Attempt& attempt) { set(attempt, one, "straddles", true); },
                  Result::fail,
                  1,
                  {"across its end"}},
                 {"no line",
                  [](Attempt& attempt) {
                    erase(attempt, {.rank = 0, .kind = "placement", .arm = "graph_b"});
                  },
                  Result::fail,
                  0,
                  {"rank 0 left no `placement` line of the input of arm graph_b"}},
             },
             "cuda");
  judge_rows(kPlacementCheck, with("per_rank"),
             {
                 {"odd ranks lie as even ones",
                  [](Attempt& attempt) {
                    set(attempt, {.rank = 1, .kind = "placement", .arm = "free_graph"}, "offset",
                        0);
                  },
                  Result::fail,
                  1,
                  {"odd ranks elsewhere than even ones, and across a border"}},
                 {"nothing straddles",
                  [one](Attempt& attempt) { set(attempt, one, "straddles", false); },
                  Result::fail,
                  1,
                  {"per_rank"}},
                 {"even ranks straddle too",
                  [](Attempt& attempt) {
                    set(attempt, {.rank = 0, .kind = "placement"}, "straddles", true);
                  },
                  Result::fail,
                  0,
                  {"per_rank"}},
             },
             "cuda");
}

TEST(Placement, WholeAllocationsHaveNoBorderToLieAcross) {
  EXPECT_EQ(record::name(judge_one(
                             kPlacementCheck, with("per_rank", "default"), [](Attempt&) {}, "sim")
                             .result),
            "pass");
  const auto across = [](Attempt& attempt) {
    set(attempt, {.rank = 1, .kind = "placement"}, "straddles", true);
  };
  EXPECT_EQ(
      record::name(judge_one(kPlacementCheck, with("per_rank", "default"), across, "sim").result),
      "fail");
}

TEST(Placement, TrainingStepsHaveNone) {
  EXPECT_EQ(record::name(judge_one(kPlacementCheck, {{"impl", "manual"}}, [](Attempt&) {}).result),
            "not_applicable");
}

}  // namespace
}  // namespace graphproof::checks

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

TEST(Placement, OfTrainingStepsIsThatOfFlatBuffersAndPools) {
  const json sharded = {{"impl", "local"},
                        {"dp", 2},
                        {"microbatches", 2},
                        {"placement", "per_rank"},
                        {"distributed_optimizer", true}};
  const auto as_on_rank_0 = [](const char* arm, const char* buffer) {
    return [=](Attempt& attempt) {
      for (Line& line : attempt.ranks.at(1).evidence->lines)
        if (line.kind == "placement" && text(line, "arm") == arm && text(line, "buffer") == buffer)
          line.fields["offset"] = std::string_view(buffer) == "pool" ? 512 : 0;
    };
  };
  judge_rows(kPlacementCheck, sharded,
             {{"gradients as on rank 0 (M414)",
               as_on_rank_0("lockstep_graph", "gradients"),
               Result::fail,
               1,
               {"the gradients of arm lockstep_graph does not lie as placement per_rank asks"}},
              {"parameters as on rank 0",
               as_on_rank_0("eager_a", "parameters"),
               Result::fail,
               1,
               {"the parameters of arm eager_a"}},
              {"the pool as on rank 0",
               as_on_rank_0("lockstep_graph", "pool"),
               Result::fail,
               1,
               {"the pool of arm lockstep_graph"}},
              {"no lines of a rank",
               [](Attempt& attempt) { erase(attempt, {.rank = 1, .kind = "placement"}); },
               Result::fail,
               1,
               {"rank 1 left no `placement` line of the gradients of arm eager_a"}}});
}

TEST(Placement, OfAnInferenceJobIsThatOfItsPools) {
  judge_rows(kPlacementCheck,
             {{"impl", "local"},
              {"inference_scope", "block"},
              {"dp", 2},
              {"microbatch_size", 4},
              {"steps", 64},
              {"schedule", "decode"},
              {"placement", "per_rank"}},
             {{"no line of the second graph arm",
               [](Attempt& attempt) {
                 erase(attempt, {.rank = 1, .kind = "placement", .arm = "graph_b"});
               },
               Result::fail,
               1,
               {"rank 1 left no `placement` line of the pool of arm graph_b"}}});
}

TEST(Placement, OfSymmetricTrainingStepsIsTheAllocators) {
  EXPECT_EQ(record::name(judge_one(kPlacementCheck, {{"impl", "manual"}}, [](Attempt&) {}).result),
            "not_applicable");
}

}  // namespace
}  // namespace graphproof::checks

#include <gtest/gtest.h>

#include "suites/checks/testing/check_rows.h"

namespace graphproof::checks {
namespace {

// Of requests of 16 tokens a rollout has 48 steps.
const nlohmann::json kRolledOut = {{"impl", "local"},   {"inference_scope", "block"},
                                   {"microbatches", 2}, {"microbatch_size", 4},
                                   {"dropout", true},   {"schedule", "train-rollout-train"}};

TEST(Rollouts, Rows) {
  const Where second{.rank = 0, .kind = "compare", .step = 50, .name = "rollout"};
  judge_rows("D93.rollouts", kRolledOut,
             {
                 {.name = "the weights of the first rollout in the second (M490)",
                  .change = [=](Attempt& a) { set(a, second, "equal", false); },
                  .rank = 0,
                  .mentions = {"`rollout`: lockstep_graph_rollout differs from "
                               "lockstep_eager_rollout at step 50"}},
                 {.name = "nothing was compared",
                  .change = [=](Attempt& a) { set(a, second, "tensors", 0); },
                  .rank = 0,
                  .mentions = {"compared nothing"}},
                 {.name = "two arms that train were compared",
                  .change = [=](Attempt& a) { set(a, second, "left", "lockstep_eager"); },
                  .rank = 0,
                  .mentions = {"compares the wrong arms"}},
                 {.name = "absent",
                  .change = [=](Attempt& a) { erase(a, second); },
                  .rank = 0,
                  .mentions = {"comparison `rollout` at step 50"}},
             });
}

TEST(Rollouts, HaveTheChecksOfInferenceJobs) {
  const Where batch{
      .rank = 0, .kind = "batch", .arm = "lockstep_graph_rollout", .step = 50, .name = ""};
  judge_rows("D71.batches", kRolledOut,
             {{.name = "a batch of the second rollout ran eagerly",
               .change = [=](Attempt& a) { set(a, batch, "launches", 1); },
               .rank = 0,
               .mentions = {"arm lockstep_graph_rollout launched another number of graphs"}}});
  judge_rows("D71.results_written", kRolledOut,
             {{.name = "no address of the second rollout",
               .change =
                   [=](Attempt& a) {
                     erase(a, {.rank = 0,
                               .kind = "address",
                               .arm = "lockstep_graph_rollout",
                               .step = 51,
                               .name = ""});
                   },
               .rank = 0,
               .mentions = {"`address` line of arm lockstep_graph_rollout at step 51"}}});
  judge_rows("D73.whole_sequences", kRolledOut,
             {{.name = "a request that attends to others' tokens in every arm",
               .change = [=](Attempt& a) { set(a, {.kind = "sequences"}, "max_abs", 0.4); },
               .rank = 0,
               .mentions = {"one pass over whole sequences"}}});
  judge_rows("D74.graph_memory", kRolledOut,
             {{.name = "a smaller size has memory of its own",
               .change =
                   [=](Attempt& a) {
                     set(a, {.kind = "capture", .arm = "solo_graph_rollout", .name = "decode.1"},
                         "pool_bytes", 4194304);
                   },
               .rank = 0,
               .mentions = {"the graphs of arm solo_graph_rollout take more memory"}}});
}

}  // namespace
}  // namespace graphproof::checks

#include <gtest/gtest.h>

#include "suites/checks/testing/check_rows.h"

namespace graphproof::checks {
namespace {

const nlohmann::json kBatchesAxes = {
    {"impl", "local"}, {"inference_scope", "block"}, {"dp", 2},           {"microbatch_size", 4},
    {"steps", 64},     {"schedule", "decode"},       {"prefill_chunk", 4}};

TEST(InferenceBatches, Rows) {
  const Where at_nine{.rank = 1, .kind = "batch", .arm = "lockstep_graph", .step = 9};
  const Where last{.rank = 0, .kind = "batch", .arm = "free_graph", .step = 63};
  judge_rows("D71.batches", kBatchesAxes,
             {
                 {.name = "another size than the ranks agreed on (M315)",
                  .change = [=](Attempt& a) { set(a, at_nine, "size", 64); },
                  .rank = 1,
                  .mentions = {"arm lockstep_graph computed another batch than its requests ask "
                               "for",
                               "in a batch of 64", "ranks that choose other sizes"}},
                 {.name = "other work",
                  .change = [=](Attempt& a) { set(a, at_nine, "work", "idle"); },
                  .rank = 1,
                  .mentions = {"idle of"}},
                 {.name = "other tokens",
                  .change = [=](Attempt& a) { set(a, at_nine, "rows", 50); },
                  .rank = 1,
                  .mentions = {"of 50 tokens"}},
                 {.name = "a batch that ran eagerly",
                  .change = [=](Attempt& a) { set(a, last, "launches", 3); },
                  .rank = 0,
                  .mentions = {"arm free_graph launched another number of graphs up to step 63",
                               "got 3 launches", "proves nothing about its graph"}},
                 {.name = "a launch in an eager arm",
                  .change =
                      [](Attempt& a) {
                        set(a, {.rank = 0, .kind = "batch", .arm = "eager_b", .step = 2},
                            "launches", 1);
                      },
                  .rank = 0,
                  .mentions = {"arm eager_b", "want 0 launches"}},
                 {.name = "a capture during the job",
                  .change = [=](Attempt& a) { set(a, at_nine, "captures", 5); },
                  .rank = 1,
                  .mentions = {"began another number of captures up to step 9", "got 5 captures",
                               "want 4 captures"}},
                 {.name = "absent",
                  .change = [=](Attempt& a) { erase(a, at_nine); },
                  .rank = 1,
                  .mentions = {"`batch` line of arm lockstep_graph at step 9"}},
             });
}

TEST(InferenceResults, Rows) {
  const Where poison{.rank = 1, .kind = "poison", .arm = "graph_b", .step = 9};
  const Where address{.rank = 1, .kind = "address", .arm = "lockstep_graph", .step = 9};
  judge_rows(
      "D71.results_written", kBatchesAxes,
      {
          {.name = "poison is left",
           .change = [=](Attempt& a) { set(a, poison, "canary_words", 7); },
           .rank = 1,
           .mentions = {"a replay of arm graph_b left results unwritten", "7 canary words"}},
          {.name = "nothing was poisoned",
           .change = [=](Attempt& a) { set(a, poison, "outputs", 0); },
           .rank = 1,
           .mentions = {"in 0 outputs"}},
          {.name = "a launch that nothing announced",
           .change = [=](Attempt& a) { set(a, poison, "launches", 2); },
           .rank = 1,
           .mentions = {"launches of arm graph_b that nothing announced", "got 2 launches"}},
          {.name = "a moved input",
           .change =
               [=](Attempt& a) {
                 set(a, address, "moved",
                     nlohmann::json{{{"tensor", "slots"}, {"captured", "0x1"}, {"now", "0x2"}}});
               },
           .rank = 1,
           .mentions = {"inputs of a graph of arm lockstep_graph moved", "`slots` at 0x2"}},
          {.name = "nothing was registered",
           .change = [=](Attempt& a) { set(a, address, "registered", 0); },
           .rank = 1,
           .mentions = {"no registered tensor"}},
          {.name = "no poison line",
           .change = [=](Attempt& a) { erase(a, poison); },
           .rank = 1,
           .mentions = {"`poison` line of arm graph_b at step 9"}},
          {.name = "no address line",
           .change = [=](Attempt& a) { erase(a, address); },
           .rank = 1,
           .mentions = {"`address` line of arm lockstep_graph at step 9"}},
          {.name = "free memory was not overwritten",
           .change =
               [](Attempt& a) {
                 set(a, {.rank = 0, .kind = "scribbled", .arm = "lockstep_graph"}, "bytes", 0);
               },
           .rank = 0,
           .mentions = {"of more than 0 bytes at step 32"}},
      });
}

TEST(InferenceBatches, AreThoseOfTheScope) {
  for (const char* scope : {"layer", "block"}) {
    nlohmann::json axes = kBatchesAxes;
    axes["inference_scope"] = scope;
    axes["prefill_chunk"] = 0;
    for (const char* check : {"D71.batches", "D71.results_written"})
      EXPECT_EQ(record::name(judge_one(check, axes, [](Attempt&) {}).result), "pass")
          << check << " " << scope;
  }
  const nlohmann::json eager = {{"microbatch_size", 4}, {"steps", 64}, {"schedule", "decode"}};
  EXPECT_EQ(record::name(judge_one("D71.batches", eager, [](Attempt&) {}).result), "pass");
}

}  // namespace
}  // namespace graphproof::checks

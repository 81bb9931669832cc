#include <gtest/gtest.h>

#include <tuple>

#include "suites/checks/testing/check_rows.h"

namespace graphproof::checks {
namespace {

TEST(WarmedUp, Rows) {
  const Where capture{.rank = 1, .kind = "capture", .arm = "solo_graph"};
  judge_rows(
      "D37.warmed_up", kTwoRanks,
      {
          {.name = "no warm-up (M46)",
           .change = [=](Attempt& a) { set(a, capture, "warmups", 0); },
           .rank = 1,
           .mentions = {"graph training of arm solo_graph was captured before its work had run",
                        "0 warm-up runs", "2, by axis warmup_steps"}},
          {.name = "no count",
           .change = [=](Attempt& a) { unset(a, capture, "warmups"); },
           .rank = 1,
           .mentions = {"unknown warm-up runs"}},
          {.name = "a warm-up that the engine counts and no layer (M168)",
           .change = [=](Attempt& a) { set(a, capture, "counter_before", {4, 3}); },
           .rank = 1,
           .mentions = {"layers had not run before graph training of arm solo_graph", "[4,3]",
                        "4 at least: 2 eager steps"},
           .also = {"D18.coverage"}},
          rank_died(capture),
      });
}

TEST(WarmedUp, OfLocalTheOptimizerRunsOnceBeforeItsCaptureAndItsModulesAsAsked) {
  const Where capture{.rank = 0, .kind = "capture", .arm = "solo_graph"};
  for (const auto& [graph, warmups, word] : {std::tuple{"optimizer", 1, "pass"},
                                             {"optimizer", 0, "fail"},
                                             {"layers.0.layer.forward", 1, "fail"}}) {
    const record::CheckResult result =
        judge_one("D37.warmed_up", {{"impl", "local"}, {"optimizer_graph", true}}, [&](Attempt& a) {
          set(a, capture, "graph", graph);
          set(a, capture, "warmups", warmups);
        });
    EXPECT_EQ(record::name(result.result), word)
        << graph << " " << warmups << ": " << record::to_text(result.message);
  }
}

TEST(ModulesWarmedUp, PartsOfAFrozenEncoderHaveNoBackward) {
  const Where capture{.rank = 0, .kind = "capture", .arm = "solo_graph"};
  for (const auto& [frozen, graph, word] :
       {std::tuple{true, "vision.layers.0.layer.forward", "pass"},
        {false, "vision.layers.0.layer.forward", "fail"},
        {true, "layers.0.layer.forward", "fail"}}) {
    const record::CheckResult result = judge_one(
        "D37.modules_warmed_up",
        {{"impl", "local"}, {"model", "vlm"}, {"freeze_vision_model", frozen}}, [&](Attempt& a) {
          set(a, capture, "graph", graph);
          set(a, capture, "module_runs", {{"forwards", 3}, {"backwards", 0}});
        });
    EXPECT_EQ(record::name(result.result), word)
        << graph << " " << frozen << ": " << record::to_text(result.message);
  }
}

TEST(ModulesWarmedUp, Rows) {
  const Where capture{.rank = 1, .kind = "capture", .arm = "solo_graph"};
  const auto runs = [=](std::int64_t forwards, std::int64_t backwards) {
    return [=](Attempt& a) {
      set(a, capture, "module_runs", {{"forwards", forwards}, {"backwards", backwards}});
    };
  };
  judge_rows("D37.modules_warmed_up", {{"impl", "local"}, {"dp", 2}, {"microbatches", 2}},
             {
                 {.name = "no pass except in the recorded step (M169)",
                  .change = runs(2, 2),
                  .rank = 1,
                  .mentions = {"the module of graph training of arm solo_graph had run less often",
                               "2 forwards, 2 backwards",
                               "4 of each at least: 2 warm-ups after 2 in the recorded step"}},
                 {.name = "passes without their backward (M170)",
                  .change = runs(4, 3),
                  .rank = 1,
                  .mentions = {"4 forwards, 3 backwards"}},
                 {.name = "an engine that reports no warm-up",
                  .change = [=](Attempt& a) { set(a, capture, "warmups", 0); },
                  .rank = 1,
                  .mentions = {"0 warm-ups"},
                  .also = {"D37.warmed_up"}},
                 {.name = "no counts in an arm",
                  .change = [=](Attempt& a) { set(a, capture, "module_runs", nullptr); },
                  .rank = 1,
                  .mentions = {"`capture` line with `module_runs` of arm solo_graph"}},
                 rank_died(capture),
             });
  EXPECT_EQ(
      judge_one("D37.modules_warmed_up", {{"impl", "transformer_engine"}, {"dp", 2}}, runs(2, 2))
          .result,
      record::Result::pass)
      << "its eager steps are the warm-up";
  EXPECT_EQ(
      judge_one("D37.modules_warmed_up", {{"impl", "full_iteration"}}, [](Attempt&) {}).result,
      record::Result::not_applicable);
}

}  // namespace
}  // namespace graphproof::checks

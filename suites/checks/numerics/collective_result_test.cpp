#include <gtest/gtest.h>

#include "suites/checks/testing/check_rows.h"

namespace graphproof::checks {
namespace {

using nlohmann::json;
using record::Result;

json collective(const char* impl) {
  return {{"impl", impl},
          {"dp", 2},
          {"model", "collective"},
          {"collective", "reduce_scatter"},
          {"collective_bytes", 65536}};
}

const json kMismatch = {{"tensor", "result"}, {"element", 17},    {"left", 3.0},
                        {"right", 4.0},       {"max_abs", 1.0},   {"max_rel", 0.25},
                        {"max_ulp", 4194304}, {"elements", 8192}, {"differing", 5}};

/// Changes the comparison of `arm` with the closed form at `step`.
auto wrong(int rank, const char* arm, std::int64_t step) {
  return [rank, arm, step](Attempt& attempt) {
    bool any = false;
    for (Line& line : attempt.ranks.at(static_cast<std::size_t>(rank)).evidence->lines) {
      if (line.kind != "compare" || line.fields.at("compared") != "closed_form" ||
          line.fields.at("right") != arm || line.fields.at("step") != step)
        continue;
      line.fields["equal"] = false;
      line.fields["mismatch"] = kMismatch;
      any = true;
    }
    ASSERT_TRUE(any);
  };
}
/// For one step, or for all if there is none.
auto missing(int rank, const char* arm, std::optional<std::int64_t> step = {}) {
  return [rank, arm, step](Attempt& attempt) {
    std::erase_if(
        attempt.ranks.at(static_cast<std::size_t>(rank)).evidence->lines, [&](const Line& line) {
          return line.kind == "compare" && line.fields.at("compared") == "closed_form" &&
                 line.fields.at("right") == arm && (!step || line.fields.at("step") == *step);
        });
    set(attempt, {.rank = rank, .kind = "end"}, "lines",
        attempt.ranks.at(static_cast<std::size_t>(rank)).evidence->lines.size() - 1);
  };
}

TEST(CollectiveResult, AWrongEagerResultFailsTheEagerCheckAlone) {
  judge_rows("D53.eager_collective", collective("none"),
             {
                 {"wrong",
                  wrong(1, "eager_a", 2),
                  Result::fail,
                  1,
                  {"`closed_form`: eager_a differs from closed_form at step 2",
                   "`result` element 17 is 4.0, 5 of 8192 elements differ"}},
                 {"not compared",
                  missing(0, "eager_b"),
                  Result::fail,
                  0,
                  {"rank 0 left no comparison of arm eager_b with the closed form at step 0"}},
             });
}

TEST(CollectiveResult, TheEagerArmsBesideTheGraphsAreWantedOfARankThatFinished) {
  judge_rows(
      "D53.eager_collective", collective("manual"),
      {
          {"wrong in lockstep",
           wrong(1, "lockstep_eager", 5),
           Result::fail,
           1,
           {"lockstep_eager differs from closed_form at step 5"}},
          {"not compared in lockstep",
           missing(1, "lockstep_eager"),
           Result::fail,
           1,
           {"rank 1 left no comparison of arm lockstep_eager with the closed form at step 0"}},
          {"its first step was not compared",
           missing(1, "lockstep_eager", 0),
           Result::fail,
           1,
           {"arm lockstep_eager with the closed form at step 0"}},
          {"not compared in the free run",
           missing(0, "free_eager"),
           Result::fail,
           0,
           {"rank 0 left no comparison of arm free_eager"}},
          {"a rank that hung in its graph",
           [](Attempt& a) { die_before(a, {.rank = 1, .kind = "replay"}); },
           Result::pass,
           std::nullopt,
           {},
           {"*"}},
      });
}

TEST(CollectiveResult, AWrongReplayFailsTheReplayCheckAlone) {
  judge_rows(
      "D53.replayed_collective", collective("manual"),
      {
          {"wrong in lockstep",
           wrong(1, "lockstep_graph", 3),
           Result::fail,
           1,
           {"lockstep_graph differs from closed_form at step 3"}},
          {"wrong with the capture inputs",
           wrong(0, "lockstep_graph", 5),
           Result::fail,
           0,
           {"at step 5"}},
          {"wrong in the second graph", wrong(0, "graph_b", 4), Result::fail, 0, {"graph_b"}},
          {"wrong at the end of the free run",
           wrong(0, "free_graph", 4),
           Result::fail,
           0,
           {"free_graph"}},
          {"the first step in lockstep was not compared",
           missing(0, "lockstep_graph", 0),
           Result::fail,
           0,
           {"arm lockstep_graph with the closed form at step 0"}},
          {"the first step of the second graph was not compared",
           missing(0, "graph_b", 0),
           Result::fail,
           0,
           {"arm graph_b with the closed form at step 0"}},
          {"the free run was not compared",
           missing(1, "free_graph"),
           Result::fail,
           1,
           {"rank 1 left no comparison of arm free_graph"}},
      });
}

TEST(CollectiveResult, TrainingStepsHaveNoClosedForm) {
  EXPECT_EQ(
      record::name(judge_one("D53.eager_collective", {{"impl", "manual"}}, [](Attempt&) {}).result),
      "not_applicable");
  EXPECT_EQ(record::name(
                judge_one("D53.replayed_collective", {{"impl", "manual"}}, [](Attempt&) {}).result),
            "not_applicable");
}

TEST(CollectiveResult, ACollectiveHasNoLossesRatesLayersOrLayout) {
  for (const char* check :
       {"D04.learning_rate", "D18.coverage", "D53.layout_reference", "D31.allocator_series",
        "D31.device_trend", "D30.returned_after_flush", "D32.pools_released"})
    EXPECT_EQ(record::name(judge_one(check, collective("manual"), [](Attempt&) {}).result),
              "not_applicable")
        << check;
  for (const char* check :
       {"D01.lockstep", "D01.capture_inputs_last", "D01.free_run", "D02.eager_repeats",
        "D02.graph_repeats", "D03.outputs_written", "D07.static_addresses", "D15.census",
        "D19.capture_status", "D24.rank_signatures", "D25.collective_ledger", "D26.votes",
        "D29.teardown_order", "D36.capture_changes_nothing", "D43.replays"})
    EXPECT_EQ(record::name(judge_one(check, collective("manual"), [](Attempt&) {}).result), "pass")
        << check;
}

}  // namespace
}  // namespace graphproof::checks

// A check that judges every step demands the first and the last one.
#include <gtest/gtest.h>

#include <tuple>

#include "suites/checks/attempt/expected.h"
#include "suites/checks/testing/check_rows.h"

namespace graphproof::checks {
namespace {

using nlohmann::json;

struct Looked {
  const char* check;
  json axes;
  Where line;  // of some step
  bool from_the_first_replay =
      false;  // and to the step with the capture's inputs; else each of the case's steps
};

const json kExperts = {{"impl", "none"},
                       {"model", "moe"},
                       {"experts", 4},
                       {"topk", 2},
                       {"dispatch", "drop_and_pad"},
                       {"dispatcher", "alltoall"}};

json with(json axes, const char* name, const json& value) {
  axes[name] = value;
  return axes;
}

std::vector<Looked> looked() {
  std::vector<Looked> rows = {
      {"D02.eager_repeats", {{"impl", "none"}}, {.rank = 0, .kind = "step", .arm = "eager_a"}},
      {"D02.eager_repeats", {{"impl", "none"}}, {.rank = 0, .kind = "step", .arm = "solo_eager"}},
      {"D02.graph_repeats", {{"impl", "manual"}}, {.rank = 0, .kind = "step", .arm = "solo_graph"}},
      {"D01.lockstep", {{"impl", "manual"}}, {.rank = 0, .kind = "step", .arm = "lockstep_eager"}},
      {"D01.lockstep", {{"impl", "manual"}}, {.rank = 0, .kind = "step", .arm = "lockstep_graph"}}};
  for (const auto& [check, axes, kind, name] :
       std::vector<std::tuple<const char*, json, const char*, const char*>>{
           {"D39.fp8_weights", {{"impl", "none"}, {"fp8_weights", true}}, "fp8_weights", ""},
           {"D70.fp8_scaling", {{"impl", "none"}, {"precision", "fp8_delayed"}}, "fp8_scaling", ""},
           {"D40.expert_ledger", kExperts, "experts", ""},
           {"D41.schedule", {{"impl", "none"}, {"pp", 2}, {"microbatches", 2}}, "schedule", ""},
           {"D42.recompute", {{"impl", "none"}, {"recompute", "full(uniform,1)"}}, "recompute", ""},
           {"D43.host_checks",
            {{"impl", "none"}, {"nan_check_loss", true}},
            "hyperparameter",
            "losses_checked"},
           {"D43.host_checks",
            {{"impl", "none"}, {"nan_check_grad", true}},
            "hyperparameter",
            "gradients_checked"},
           {"D43.overlapped_reduction",
            {{"impl", "none"}, {"dp", 2}, {"overlap_grad_reduce", true}},
            "hyperparameter",
            "buckets_overlapped"}}) {
    rows.push_back(
        {check, axes, {.rank = 0, .kind = kind, .arm = "eager_a", .step = {}, .name = name}});
    // Engine local allows the checks of the host, and has a schedule too in a pipeline.
    rows.push_back({check,
                    with(axes, "impl", "local"),
                    {.rank = 0, .kind = kind, .arm = "lockstep_graph", .step = {}, .name = name},
                    true});
  }
  return rows;
}

TEST(StepRange, FirstAndLastStepAreWanted) {
  for (const Looked& row : looked()) {
    ASSERT_EQ(judge_one(row.check, row.axes, [](Attempt&) {}).result, record::Result::pass)
        << row.check << row.axes;
    for (const bool last : {false, true}) {
      std::int64_t step = 0;
      const record::CheckResult result = judge_one(row.check, row.axes, [&](Attempt& a) {
        const Expected of_case = expected(a.axes);
        if (row.from_the_first_replay)
          step = last ? of_case.last_inputs_step : of_case.first_replay;
        else
          step = last ? of_case.steps - 1 : 0;
        Where line = row.line;
        line.step = step;
        erase(a, line);
      });
      EXPECT_EQ(result.result, record::Result::fail)
          << row.check << row.axes << " without its line at step " << step;
      EXPECT_NE(record::to_text(result.message).find("at step " + std::to_string(step)),
                std::string::npos)
          << record::to_text(result.message);
    }
  }
}

}  // namespace
}  // namespace graphproof::checks

// Every fault that workload and engines carry on one rank bites where the fault table says, and the same run without
// it is sound. M61 needs ranks: parallel_test.cpp.
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "workloads/engines/twin_steps.h"

namespace graphproof::engines {
namespace {

constexpr std::int64_t kWarmup = 2, kSteps = 6;

struct Outcome {
  std::vector<bool> equal;  // by step
  std::optional<capture::DeviceError> error;
  Counters counters;
  std::vector<std::string> moved;
  std::int64_t canaries = 0;
  std::vector<CaptureReport> reports;
  std::vector<std::vector<float>> masks;  // the first mask, by replayed step
  std::vector<float> layer_counter;
};

// Whether the process is good for more after a failed capture: LibTorch 2.11 on CUDA is not (pytorch#180395).
bool survives_failed_captures() { return workloads::device_under_test().name() == "sim"; }

Outcome run(const std::string& impl, const std::string& fault, double dropout = 0) {
  workloads::ModelConfig model;
  model.microbatches = 2;
  model.linear_bias = true;
  model.dropout = dropout;
  TwinSteps twins(model, {}, {.impl = impl, .warmup_steps = kWarmup, .fault = {fault}});
  Outcome outcome;
  try {
    for (std::int64_t i = 0; i < kSteps; ++i) {
      outcome.equal.push_back(twins.step(i).equal);
      if (dropout > 0 && i >= kWarmup) outcome.masks.push_back(workloads::on_host(twins.graph_step().masks()[0].tensor));
    }
  } catch (const capture::DeviceError& error) {
    outcome.error = error;
  }
  outcome.counters = twins.graph->counters();
  outcome.moved = twins.witness.moved_tensors;
  outcome.canaries = twins.witness.canaries;
  outcome.reports = twins.witness.reports;
  if (!outcome.error) outcome.layer_counter = workloads::on_host(twins.graph_step().layer_counter());
  return outcome;
}

using Equal = std::vector<bool>;

TEST(Faults, TheCleanTwinsAreSound) {
  for (const char* impl : {"manual", "full_iteration"})
    for (const double dropout : {0.0, 0.1}) {
      const Outcome outcome = run(impl, "none", dropout);
      EXPECT_EQ(outcome.equal, Equal(kSteps, true)) << impl;
      EXPECT_EQ(outcome.counters.replays, kSteps - kWarmup) << impl;
      EXPECT_TRUE(outcome.moved.empty()) << impl;
      EXPECT_EQ(outcome.canaries, 0) << impl;
      EXPECT_EQ(outcome.reports.at(0).status, "ok") << impl;
      for (std::size_t i = 1; i < outcome.masks.size(); ++i) EXPECT_NE(outcome.masks[i], outcome.masks[i - 1]) << impl;
    }
}

TEST(Faults, M01IsRefusedInsideTheCaptureWithCode900AndLeavesNoGraph) {
  for (const char* impl : {"manual", "full_iteration"}) {
    const Outcome outcome = run(impl, "M01");
    EXPECT_EQ(outcome.equal, Equal(kWarmup, true)) << "the host may wait while steps run eagerly";
    ASSERT_TRUE(outcome.error) << impl;
    EXPECT_EQ(outcome.error->code, 900);
    ASSERT_EQ(outcome.reports.size(), 1u);
    EXPECT_EQ(outcome.reports[0].status, "error");
    EXPECT_EQ(outcome.reports[0].code, 900);
    EXPECT_EQ(outcome.reports[0].site, "aten::_local_scalar_dense");
    EXPECT_NE(outcome.reports[0].message.find("operation not permitted when stream is capturing"), std::string::npos);
    EXPECT_EQ(outcome.counters.replays, 0);
    EXPECT_EQ(outcome.counters.captures, 1);
    if (!survives_failed_captures()) return;
  }
  EXPECT_EQ(run("manual", "none").equal, Equal(kSteps, true)) << "the process is usable afterwards";
}

TEST(Faults, M15CountsItsLayerAtTheCaptureAndNotAtReplays) {
  const Outcome outcome = run("manual", "M15");
  ASSERT_FALSE(outcome.error) << outcome.error->what();
  const CaptureReport& report = outcome.reports.at(0);
  EXPECT_EQ(report.status, "ok");
  EXPECT_EQ(report.counter_before, (std::vector<std::int64_t>{4, 4}));
  EXPECT_EQ(report.counter_after, (std::vector<std::int64_t>{6, 4}));
  EXPECT_EQ(outcome.layer_counter, (std::vector<float>{6, 12}));
  EXPECT_EQ(outcome.equal, (Equal{true, true, false, false, false, false}));
}

TEST(Faults, M23IsEqualAtTheCaptureAndFreezesItsRateAfterwards) {
  const Outcome outcome = run("manual", "M23");
  EXPECT_EQ(outcome.equal, (Equal{true, true, true, false, false, false}));
}

TEST(Faults, M26MovesTheStaticInputsAndReplaysOldOnes) {
  const Outcome outcome = run("full_iteration", "M26");
  EXPECT_EQ(outcome.equal, (Equal{true, true, true, false, false, false}));
  EXPECT_NE(std::find(outcome.moved.begin(), outcome.moved.end(), "tokens.0"), outcome.moved.end());
}

TEST(Faults, M32DrawsTheSameMaskInConsecutiveReplays) {
  const Outcome outcome = run("full_iteration", "M32", 0.1);
  for (std::size_t i = 1; i < outcome.masks.size(); ++i) EXPECT_EQ(outcome.masks[i], outcome.masks[0]) << "replay " << i;
}

TEST(Faults, M49ComparesEqualWhileTheOutputsStayUnwritten) {
  const Outcome outcome = run("manual", "M49");
  EXPECT_EQ(outcome.equal, Equal(kSteps, true)) << "the comparison is deceived: that is the fault";
  EXPECT_GT(outcome.canaries, 0);
  EXPECT_EQ(outcome.counters.replays, 0);
}

TEST(Faults, M85AgreesInNumbersAndClaimsAGraphThatWasNeverLaunched) {
  const Outcome outcome = run("full_iteration", "M85", 0.1);
  EXPECT_EQ(outcome.equal, Equal(kSteps, true));
  EXPECT_FALSE(outcome.error);
  EXPECT_EQ(outcome.reports.at(0).status, "ok");
  EXPECT_EQ(outcome.counters.replays, 0);
  EXPECT_EQ(outcome.counters.fallbacks, 0);
  EXPECT_EQ(outcome.counters.eager, kWarmup);
}

}  // namespace
}  // namespace graphproof::engines

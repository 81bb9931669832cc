// One test for each sentence of the contracts in eager.h, manual.h, full_iteration.h and
// static_inputs.h.
#include <gtest/gtest.h>

#include "workloads/engines/step/full_iteration.h"
#include "workloads/engines/step/static_inputs.h"
#include "workloads/testing/twin_steps.h"

namespace graphproof::engines::contract_test {
namespace {

using workloads::ModelConfig;

constexpr std::int64_t kWarmup = 2, kSteps = 6;

ModelConfig model(double dropout) {
  ModelConfig config;
  config.microbatches = 2;
  config.linear_bias = true;
  config.dropout = dropout;
  return config;
}

EngineConfig engine(const std::string& impl) { return {.impl = impl, .warmup_steps = kWarmup}; }

std::vector<std::string> whole_step_engines() {
  std::vector<std::string> impls;
  for (const EngineTraits& engine : kEngineTraits)
    if (engine.captures_whole_step()) impls.emplace_back(engine.impl);
  return impls;
}

class GraphEngine : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Impl, GraphEngine, testing::ValuesIn(whole_step_engines()),
                         [](const auto& row) { return row.param; });

TEST_P(GraphEngine, ReplayEqualsEagerBitForBitWithFreshInputsRatesAndMasks) {
  for (const double dropout : {0.0, 0.1}) {
    TwinSteps twins(model(dropout), {}, engine(GetParam()));
    for (std::int64_t i = 0; i < kSteps; ++i)
      EXPECT_EQ(difference(twins.step(i)), "") << "step " << i << " dropout " << dropout;
    // The inputs of the capture again, with the state after later steps.
    EXPECT_EQ(difference(twins.step(kWarmup)), "") << "capture inputs last, dropout " << dropout;
    EXPECT_EQ(twins.witness.canaries, 0);
    EXPECT_GT(twins.witness.canaries_poisoned, 0);
    EXPECT_TRUE(twins.witness.moved_tensors.empty());
  }
}

TEST_P(GraphEngine, GeneratorsEndWhereEagerOnesEnd) {
  TwinSteps twins(model(0.1), {}, engine(GetParam()));
  for (std::int64_t i = 0; i < kSteps; ++i) twins.step(i);
  EXPECT_EQ(twins.graph_step().rng().states(), twins.eager_step().rng().states());
}

TEST_P(GraphEngine, RunsEagerlyBeforeTheCaptureAndOnlyReplaysFromItOn) {
  TwinSteps twins(model(0), {}, engine(GetParam()));
  for (std::int64_t i = 0; i < kSteps; ++i) {
    twins.step(i);
    const Counters counters = twins.graph->counters();
    EXPECT_EQ(counters.steps, i + 1);
    EXPECT_EQ(counters.eager, std::min(i + 1, kWarmup));
    EXPECT_EQ(counters.replays, std::max<std::int64_t>(0, i + 1 - kWarmup));
    EXPECT_EQ(counters.captures, i < kWarmup ? 0 : 1);
    EXPECT_EQ(counters.fallbacks, 0);
  }
}

TEST_P(GraphEngine, CapturesInTheFirstStepWhereNoWarmupIsAskedFor) {
  EngineConfig config = engine(GetParam());
  config.warmup_steps = 0;
  TwinSteps twins(model(0.1), {}, config);
  for (std::int64_t i = 0; i < 3; ++i) EXPECT_EQ(difference(twins.step(i)), "") << "step " << i;
  EXPECT_EQ(twins.graph->counters().replays, 3);
}

TEST_P(GraphEngine, TheCaptureItselfRunsNothing) {
  TwinSteps twins(model(0.1), {}, engine(GetParam()));
  for (std::int64_t i = 0; i < kSteps; ++i) twins.step(i);
  ASSERT_EQ(twins.witness.reports.size(), 1u);
  const CaptureReport& report = twins.witness.reports[0];
  EXPECT_EQ(report.status, "ok");
  EXPECT_EQ(report.counter_before, (std::vector<std::int64_t>{2 * kWarmup, 2 * kWarmup}));
  EXPECT_EQ(report.counter_after, report.counter_before);
  EXPECT_EQ(twins.witness.state_after, twins.witness.state_before);
  EXPECT_GT(report.census.total, 100);
  EXPECT_GT(report.pool_bytes, 0);
  EXPECT_EQ(report.mode, capture::CaptureMode::thread_local_);
  EXPECT_EQ(workloads::on_host(twins.graph_step().layer_counter()), (std::vector<float>{12, 12}));
}

TEST_P(GraphEngine, TellsItsObserverInOrder) {
  TwinSteps twins(model(0), {}, engine(GetParam()));
  for (std::int64_t i = 0; i < kWarmup + 2; ++i) twins.step(i);
  const std::string name = std::string(GetParam()) == "manual" ? "step" : "training";
  EXPECT_EQ(twins.witness.calls,
            (std::vector<std::string>{"before_capture " + name, "after_capture " + name,
                                      "before_replay " + name, "after_replay " + name,
                                      "before_replay " + name, "after_replay " + name}));
}

TEST_P(GraphEngine, KeepsNothingOfTheCallersBatch) {
  TwinSteps twins(model(0), {}, engine(GetParam()));
  for (std::int64_t i = 0; i < kWarmup + 2; ++i) {
    const auto batch = twins.batch(i);
    twins.graph->step(batch, 0.1);
    twins.device().synchronize();
    for (const auto& tokens : batch.tokens) EXPECT_EQ(tokens.use_count(), 1u) << "step " << i;
    for (const auto& labels : batch.labels) EXPECT_EQ(labels.use_count(), 1u) << "step " << i;
  }
}

TEST_P(GraphEngine, OutputsAliasTheStaticBuffersAndShowTheLatestReplay) {
  TwinSteps twins(model(0), {}, engine(GetParam()));
  for (std::int64_t i = 0; i <= kWarmup; ++i) twins.step(i);
  const auto early = twins.graph->outputs();
  twins.step(kWarmup + 1);
  EXPECT_TRUE(fixtures::compare(early, twins.graph->outputs()).equal);
  EXPECT_EQ(twins.device().address(early[0].tensor),
            twins.device().address(twins.graph_step().losses()));
}

TEST_P(GraphEngine, RefusesABatchOfAnotherShape) {
  TwinSteps twins(model(0), {}, engine(GetParam()));
  twins.step(0);
  const auto refusal = [&](const workloads::Batch& batch) -> std::string {
    try {
      twins.graph->step(batch, 0.1);
    } catch (const std::invalid_argument& error) {
      return error.what();
    }
    return "accepted";
  };
  auto batch = twins.batch(1);
  batch.labels[1] = batch.labels[1].narrow(1, 0, 8);
  EXPECT_EQ(refusal(batch),
            "static input labels.1: got Long [2, 8]; want Long [2, 16]; why: the graph holds "
            "address and shape of its "
            "first batch; next: use another engine for another shape");
  batch = twins.batch(1);
  batch.tokens.pop_back();
  EXPECT_EQ(refusal(batch),
            "static inputs: got 1 microbatches; want 2; why: the graph holds one pass for each; "
            "next: use another "
            "engine for another number");
}

TEST_P(GraphEngine, RefusesStepsAfterItsGraphsAreDropped) {
  TwinSteps twins(model(0), {}, engine(GetParam()));
  for (std::int64_t i = 0; i < kWarmup + 2; ++i) twins.step(i);
  twins.graph->drop_graphs();
  twins.graph->drop_graphs();
  EXPECT_EQ(twins.graph->counters().replays, 2);
  try {
    twins.graph->step(twins.batch(0), 0.1);
    FAIL() << "accepted";
  } catch (const std::logic_error& error) {
    EXPECT_STREQ(error.what(),
                 "engine: got step() after drop_graphs(); want no more steps; why: the captured "
                 "graphs and their memory "
                 "are gone; next: make a new engine");
  }
}

TEST_P(GraphEngine, DroppedGraphsGiveTheirMemoryBack) {
  TwinSteps twins(model(0), {}, engine(GetParam()));
  twins.device().empty_cache();  // the cached memory of earlier tests
  const auto pool_before = twins.device().memory().pool;
  for (std::int64_t i = 0; i < kWarmup + 2; ++i) twins.step(i);
  EXPECT_GT(twins.device().memory().pool, pool_before);
  twins.graph->drop_graphs();
  twins.device().empty_cache();
  EXPECT_EQ(twins.device().memory().pool, pool_before);
}

TEST_P(GraphEngine, WorksInEveryCaptureModeAndOnBothAutogradThreads) {
  for (const auto mode : {capture::CaptureMode::global, capture::CaptureMode::thread_local_,
                          capture::CaptureMode::relaxed})
    for (const bool threads : {false, true}) {
      EngineConfig config = engine(GetParam());
      config.capture_mode = mode;
      TwinSteps twins(model(0.1), {}, config);
      twins.device().autograd_threads(threads);
      for (std::int64_t i = 0; i < kWarmup + 2; ++i)
        EXPECT_EQ(difference(twins.step(i)), "")
            << "mode " << static_cast<int>(mode) << " threads " << threads;
      EXPECT_EQ(twins.witness.reports.at(0).mode, mode);
      twins.device().autograd_threads(false);
    }
}

TEST(Manual, TheOptimizerIsInsideTheGraph) {
  TwinSteps manual(model(0), {}, engine("manual")), full(model(0), {}, engine("full_iteration"));
  for (std::int64_t i = 0; i <= kWarmup; ++i) {
    manual.step(i);
    full.step(i);
  }
  const auto parameter_count = static_cast<std::int64_t>(manual.graph_step().parameters().size());
  EXPECT_EQ(manual.witness.reports.at(0).census.total,
            full.witness.reports.at(0).census.total + parameter_count);
}

TEST(FullIteration, ResetRepeatsWarmupAndCapture) {
  TwinSteps twins(model(0.1), {}, engine("full_iteration"));
  for (std::int64_t i = 0; i < kWarmup + 1; ++i)
    EXPECT_EQ(difference(twins.step(i)), "") << "step " << i;
  dynamic_cast<FullIteration&>(*twins.graph).reset();
  for (std::int64_t i = kWarmup + 1; i < 2 * kWarmup + 3; ++i)
    EXPECT_EQ(difference(twins.step(i)), "") << "step " << i;
  const Counters counters = twins.graph->counters();
  EXPECT_EQ(counters.captures, 2);
  EXPECT_EQ(counters.eager, 2 * kWarmup);
  EXPECT_EQ(counters.replays, 3);
}

TEST(FullIteration, RefusesThePlainTracker) {
  auto& device = workloads::device_under_test();
  const c10::Stream stream = device.stream_from_pool();
  const c10::StreamGuard guard(stream);
  workloads::TrainStep step(model(0.1), {}, device, 1, {}, fixtures::RngBackend::plain);
  try {
    make_engine(engine("full_iteration"), device, stream, step, nullptr);
    FAIL() << "accepted";
  } catch (const std::invalid_argument& error) {
    EXPECT_NE(std::string(error.what()).find("rule B08"), std::string::npos) << error.what();
  }
}

TEST(Eager, CapturesNothingAndNeverCallsItsObserver) {
  TwinSteps twins(model(0.1), {}, engine("none"));
  for (std::int64_t i = 0; i < kSteps; ++i)
    EXPECT_EQ(difference(twins.step(i)), "") << "step " << i;
  const Counters counters = twins.graph->counters();
  EXPECT_EQ(counters.steps, kSteps);
  EXPECT_EQ(counters.eager, kSteps);
  EXPECT_EQ(counters.replays, 0);
  EXPECT_EQ(counters.captures, 0);
  EXPECT_TRUE(twins.witness.calls.empty());
}

TEST(Engine, RefusesAnImplThatHasNoEngine) {
  auto& device = workloads::device_under_test();
  const c10::Stream stream = device.stream_from_pool();
  const c10::StreamGuard guard(stream);
  workloads::TrainStep step(model(0), {}, device, 1, {});
  try {
    make_engine(engine("compiled"), device, stream, step, nullptr);
    FAIL() << "accepted";
  } catch (const std::invalid_argument& error) {
    EXPECT_EQ(std::string(error.what()),
              "engine: got impl compiled; want " + engine_names([](const EngineTraits&) {
                return true;
              }) + "; why: no other engine is built; next: choose one of them");
  }
}

TEST(StaticInputs, TheFirstBatchIsClonedAndLaterOnesAreCopiedToTheSameAddress) {
  auto& device = workloads::device_under_test();
  const c10::Stream stream = device.stream_from_pool();
  const c10::StreamGuard guard(stream);
  const auto batch = [&](std::int64_t step) {
    return workloads::make_batch(model(0), {}, 1, step, device.torch_device());
  };
  faults::FaultHooks sound;
  for (const bool with_side_stream : {false, true}) {
    StaticInputs inputs(with_side_stream ? std::optional(device.stream_from_pool()) : std::nullopt,
                        sound);
    const auto first = batch(0), second = batch(1);
    inputs.load(first);
    const auto address = device.address(inputs.batch().tokens[1]);
    EXPECT_NE(address, device.address(first.tokens[1]));
    inputs.load(second);
    EXPECT_EQ(device.address(inputs.batch().tokens[1]), address);
    EXPECT_EQ(workloads::on_host(inputs.batch().tokens[1]), workloads::on_host(second.tokens[1]));
    EXPECT_EQ(workloads::on_host(inputs.batch().labels[0]), workloads::on_host(second.labels[0]));
  }
}

}  // namespace
}  // namespace graphproof::engines::contract_test

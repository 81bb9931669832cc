// Evaluation between training steps, under every engine. Runs on a single rank, and on several
// ranks under mpirun, where each test runs on every layout that fits.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "workloads/testing/ranks_under_test.h"
#include "workloads/testing/spread.h"
#include "workloads/testing/twin_steps.h"

namespace graphproof::engines::evaluation_test {
namespace {

using fixtures::Fault;

using workloads::Layout;
using workloads::ModelConfig;
using workloads::on_host;

constexpr std::int64_t kWarmup = 1;

ModelConfig with_dropout() {
  return {.layers = 4,
          .hidden = 32,
          .ffn = 64,
          .vocab = 64,
          .seq_length = 8,
          .microbatches = 2,
          .dropout = 0.1};
}

/// A training step on its own stream.
struct Evaluated {
  Evaluated(const ModelConfig& config, const Layout& layout)
      : stream(workloads::device_under_test().stream_from_pool()),
        guard(stream),
        step(config, layout, workloads::device_under_test(), 1, {}),
        batch(make_batch(config, layout, 1, 0, workloads::device_under_test().torch_device())) {}
  c10::Stream stream;
  c10::StreamGuard guard;
  workloads::TrainStep step;
  workloads::Batch batch;
};

TEST(Evaluation, HasTheLossesOfAForwardWithoutDropoutAndDrawsNothing) {
  ranks->for_each_layout([&](const Layout& layout) {
    ModelConfig plain = with_dropout();
    plain.dropout = 0;
    Evaluated evaluated(with_dropout(), layout), trained(plain, layout);
    const auto states = evaluated.step.rng().states();
    evaluated.step.evaluate(evaluated.batch);
    trained.step.forward_backward(trained.batch);
    EXPECT_EQ(on_host(evaluated.step.evaluation_losses()), on_host(trained.step.losses()));
    EXPECT_EQ(evaluated.step.rng().states(), states);
    for (const auto& gradient : evaluated.step.gradients())
      for (const float value : on_host(gradient.tensor)) ASSERT_EQ(value, 0) << gradient.name;
  });
}

TEST(Evaluation, OnPipelineStagesHasTheBitsOfTheSingleRankModel) {
  for (const int vpp : {1, 2})
    ranks->for_each_pipeline_layout(vpp, [&](const Layout& layout) {
      if (layout.tp > 1 || layout.dp > 1) return;
      ModelConfig config = with_dropout();
      config.layers = layout.pp * vpp;
      Evaluated stage(config, layout), single(config, {});
      stage.step.evaluate(stage.batch);
      single.step.evaluate(single.batch);
      const auto want = on_host(single.step.evaluation_losses());
      EXPECT_EQ(on_host(stage.step.evaluation_losses()),
                layout.last_stage() ? want : std::vector<float>(want.size(), 0))
          << "vpp " << vpp;
    });
}

/// Expects that the losses of one evaluated batch are equal under both.
void expect_equal_evaluation(TwinSteps& twins, std::int64_t index, bool equal = true) {
  const workloads::Batch batch = twins.batch(index);
  for (const auto& engine : {twins.eager.get(), twins.graph.get()}) engine->evaluate(batch);
  const auto want = on_host(twins.eager_step().evaluation_losses());
  EXPECT_EQ(on_host(twins.graph_step().evaluation_losses()) == want, equal) << "batch " << index;
}

void expect_training_goes_on_as_eager(const char* impl, const Layout& layout) {
  TwinSteps twins(with_dropout(), layout, {.impl = impl, .warmup_steps = kWarmup});
  for (std::int64_t i = 0; i < 2; ++i)
    EXPECT_EQ(difference(twins.step(i)), "") << impl << " step " << i;
  for (const std::int64_t batch : {10, 11, 10}) expect_equal_evaluation(twins, batch);
  EXPECT_EQ(difference(twins.step(2)), "") << impl << ", after evaluation";
  EXPECT_EQ(twins.graph_step().rng().states(), twins.eager_step().rng().states());
  twins.graph->drop_graphs();
}

TEST(Evaluation, DoesNotChangeTrainingUnderEveryEngine) {
  for (const char* impl : {"manual", "full_iteration", "local", "transformer_engine", "callables"})
    ranks->for_each_layout([&](const Layout& layout) {
      if (layout.tp * layout.dp == 1 || (layout.dp > 1 && std::string(impl) == "full_iteration"))
        expect_training_goes_on_as_eager(impl, layout);
    });
  const auto stages = [](const auto&, auto visit) {
    ranks->for_each_pipeline_layout(/*vpp=*/1, [&](const Layout& layout) {
      if (layout.tp == 1) visit(layout);
    });
  };
  spread(std::vector{"full_iteration", "transformer_engine"}, stages,
         expect_training_goes_on_as_eager);
}

TEST(Evaluation, OfFullIterationHasItsOwnGraphAndM111ReplaysThatOfTraining) {
  for (const Fault fault : {Fault::none, Fault::evaluation_replays_training_graph})
    ranks->for_each_layout([&](const Layout& layout) {
      const bool sound = fault == Fault::none;
      if (layout.tp > 1) return;
      TwinSteps twins(with_dropout(), layout, {.impl = "full_iteration", .warmup_steps = kWarmup},
                      fault);
      for (std::int64_t i = 0; i < 2; ++i) twins.step(i);
      for (const std::int64_t batch : {10, 11, 12}) expect_equal_evaluation(twins, batch, sound);
      EXPECT_EQ(twins.step(2).equal, sound) << "random numbers that training lacks";
      EXPECT_EQ(twins.graph->counters().captures, 1) << "those of training";
      twins.graph->drop_graphs();
      EXPECT_THROW(twins.graph->evaluate(twins.batch(13)), std::logic_error);
    });
}

TEST(Evaluation, OfFullIterationCallsTheObserverForItsCaptureAndReplays) {
  TwinSteps twins(with_dropout(), {}, {.impl = "full_iteration", .warmup_steps = kWarmup});
  for (std::int64_t i = 0; i < 2; ++i) twins.step(i);
  for (const std::int64_t batch : {10, 11, 12}) expect_equal_evaluation(twins, batch);
  ASSERT_EQ(twins.witness.reports.size(), 2u);
  const CaptureReport& report = twins.witness.reports.back();
  EXPECT_EQ(report.graph, "validation");
  EXPECT_EQ(report.status, "ok");
  EXPECT_EQ(report.warmups, kWarmup);
  EXPECT_GT(report.census.total, 0);
  EXPECT_TRUE(twins.witness.changed_by.empty());
  EXPECT_EQ(std::count(twins.witness.calls.begin(), twins.witness.calls.end(),
                       "before_replay validation"),
            2);
  EXPECT_EQ(twins.witness.canaries, 0) << "every replay writes its losses";
  EXPECT_TRUE(twins.witness.moved_tensors.empty());
}

// The static inputs of training are not changed.
TEST(Evaluation, M130MovesTheStaticInputsOfValidationAlone) {
  TwinSteps twins(with_dropout(), {}, {.impl = "full_iteration", .warmup_steps = kWarmup},
                  Fault::stale_validation_input);
  for (std::int64_t i = 0; i < 2; ++i) twins.step(i);
  for (const std::int64_t batch : {10, 11}) expect_equal_evaluation(twins, batch);
  EXPECT_TRUE(twins.witness.moved_tensors.empty());
  expect_equal_evaluation(twins, 12, /*equal=*/false);
  EXPECT_EQ(twins.witness.moved_tensors,
            (std::vector<std::string>{"tokens.0", "labels.0", "tokens.1", "labels.1"}));
  EXPECT_EQ(difference(twins.step(2)), "") << "training is right";
}

}  // namespace
}  // namespace graphproof::engines::evaluation_test

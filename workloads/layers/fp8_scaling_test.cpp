#include "workloads/layers/fp8_scaling.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "workloads/testing/step_under_test.h"
#include "workloads/training/checkpoint.h"

namespace graphproof::workloads::fp8_scaling_test {
namespace {

ModelConfig model_of(Precision precision) {
  return {.layers = 3,
          .hidden = 32,
          .heads = 4,
          .ffn = 64,
          .vocab = 64,
          .seq_length = 8,
          .microbatches = 2,
          .linear_bias = true,
          .precision = precision};
}
constexpr Precision kDelayed = Precision::fp8_delayed, kCurrent = Precision::fp8_current;
// Of a dense layer: the projections of attention and MLP. Each has an input and a weight.
constexpr std::int64_t kWeights = 4, kForward = 2 * kWeights;

using Values = std::map<std::string, std::vector<float>>;

Values state_of(TrainStep& step) {
  Values values;
  for (const auto& [name, tensor] : step.fp8_state()) values[name] = on_host(tensor);
  return values;
}
Values results_of(TrainStep& step) {
  Values values;
  for (const auto& [name, tensor] : step.gradients()) values[name] = on_host(tensor);
  values["losses"] = on_host(step.losses());
  return values;
}

/// Row `row` of a history of `casts` columns.
std::vector<float> row_of(const std::vector<float>& history, std::int64_t row, std::int64_t casts) {
  return {history.begin() + row * casts, history.begin() + (row + 1) * casts};
}

TEST(Fp8Scaling, NotesEachMicrobatchInARowOfItsOwnAndScalesByTheLargestOfTheHistory) {
  StepUnderTest bench(model_of(kDelayed));
  const Values before = state_of(bench.step);
  EXPECT_EQ(before.at("state:fp8.forward.scale"), std::vector<float>(3 * kForward, 1));
  bench.step.forward_backward(bench.batch);
  const Values after = state_of(bench.step);
  for (const auto& [direction, largest, casts] :
       {std::tuple{"forward", 448.0f, 3 * kForward}, {"backward", 57344.0f, 3 * kWeights}}) {
    const std::string name = std::string("state:fp8.") + direction;
    const auto &history = after.at(name + ".history"), &scale = after.at(name + ".scale");
    const auto last = row_of(history, 0, casts), first = row_of(history, 1, casts);
    EXPECT_NE(last, first) << "the microbatches have different data";
    EXPECT_EQ(row_of(history, 2, casts), std::vector<float>(casts, 0));
    for (std::int64_t c = 0; c < casts; ++c) {
      EXPECT_GT(last[c], 0) << direction << " " << c;
      EXPECT_EQ(scale[c], largest / std::max(last[c], first[c])) << direction << " " << c;
    }
    EXPECT_EQ(after.at(name + ".amax"), std::vector<float>(casts, 0));
  }
  for (const auto& [name, tensor] : bench.step.ledgers())
    if (name.starts_with("fp8:")) {
      EXPECT_EQ(on_host(tensor), std::vector<float>(2, 2)) << name << ": once a microbatch";
    }
}

TEST(Fp8Scaling, KeepsNothingForCurrentScaling) {
  StepUnderTest bench(model_of(kCurrent));
  bench.step.forward_backward(bench.batch);
  EXPECT_TRUE(state_of(bench.step).empty());
  for (const auto& [name, tensor] : bench.step.ledgers()) EXPECT_FALSE(name.starts_with("fp8:"));
}

TEST(Fp8Scaling, ComputesOtherNumbersThanBf16AndThanTheOtherRecipe) {
  std::vector<Values> results;
  for (const Precision precision : {Precision::bf16, kDelayed, kCurrent}) {
    StepUnderTest bench(model_of(precision));
    bench.step.forward_backward(bench.batch);
    results.push_back(results_of(bench.step));
    for (const float loss : results.back().at("losses"))
      EXPECT_NEAR(loss, results.front().at("losses")[0], 1.0f) << "rounding, not another model";
  }
  EXPECT_NE(results[0], results[1]);
  EXPECT_NE(results[0], results[2]);
  EXPECT_NE(results[1], results[2]);
}

TEST(Fp8Scaling, LeavesTheFirstAndTheLastLayerInBf16) {
  ModelConfig ends = model_of(kDelayed);
  ends.first_last_layers_bf16 = true;
  StepUnderTest bench(ends);
  bench.step.forward_backward(bench.batch);
  EXPECT_EQ(state_of(bench.step).at("state:fp8.forward.scale").size(), kForward);
}

TEST(Fp8Scaling, OfARecomputedPartIsThatOfItsFirstRun) {
  for (const Precision precision : {kDelayed, kCurrent})
    for (const RecomputeConfig& recompute :
         {selective({RecomputedPart::mlp}), full(RecomputeConfig::Method::uniform, 1)}) {
      ModelConfig again = model_of(precision);
      again.recompute = recompute;
      StepUnderTest plain(model_of(precision)), recomputed(again);
      for (StepUnderTest* bench : {&plain, &recomputed})
        for (int step = 0; step < 2; ++step) {
          const c10::StreamGuard guard(bench->stream);
          bench->step.forward_backward(bench->batch);
        }
      EXPECT_EQ(results_of(recomputed.step), results_of(plain.step));
      EXPECT_EQ(state_of(recomputed.step), state_of(plain.step)) << "the second run notes nothing";
    }
}

TEST(Fp8Scaling, IsNotMovedByAnEvaluation) {
  for (const bool kept : {false, true}) {
    ModelConfig config = model_of(kDelayed);
    config.fp8_weights = kept;
    StepUnderTest bench(config);
    bench.step.forward_backward(bench.batch);
    const Values before = state_of(bench.step);
    bench.step.evaluate(bench.batch);
    EXPECT_EQ(state_of(bench.step), before);
    EXPECT_NE(on_host(bench.step.evaluation_losses()), std::vector<float>(2, 0));
  }
}

TEST(Fp8Scaling, KeptCopiesAreTheNumbersThatEachMicrobatchWouldMake) {
  ModelConfig config = model_of(kCurrent);
  config.fp8_weights = true;
  StepUnderTest kept(config), made_again(model_of(kCurrent));
  for (StepUnderTest* bench : {&kept, &made_again}) {
    const c10::StreamGuard guard(bench->stream);
    bench->step.forward_backward(bench->batch);
  }
  EXPECT_EQ(results_of(kept.step), results_of(made_again.step));
}

TEST(Fp8Scaling, KeptCopiesKeepTheInverseScaleThatTheyWereMadeWith) {
  ModelConfig config = model_of(kDelayed);
  config.fp8_weights = true;
  StepUnderTest kept(config);
  bool other = false;
  for (int step = 0; step < 2; ++step) {
    const Values before = state_of(kept.step);
    kept.step.forward_backward(kept.batch);
    // The first weight's cast comes after that of its input.
    const float scale = before.at("state:fp8.forward.scale")[1];
    for (const auto& [name, tensor] : kept.step.ledgers())
      if (name == "fp8:layers.0.attention.qkv.weight.inverse") {
        EXPECT_EQ(on_host(tensor)[0], 1 / scale) << "step " << step;
      }
    other |= state_of(kept.step).at("state:fp8.forward.scale")[1] != scale;
  }
  EXPECT_TRUE(other) << "the scale has moved on, and the inverse belongs to the copy";
}

TEST(Fp8Scaling, IsPartOfACheckpoint) {
  StepUnderTest saved(model_of(kDelayed)), loaded(model_of(kDelayed));
  const auto pass = [](StepUnderTest& bench) {
    const c10::StreamGuard guard(bench.stream);
    bench.step.forward_backward(bench.batch);
  };
  pass(saved);
  Checkpoint(saved.step).load_into(loaded.step);
  EXPECT_EQ(state_of(loaded.step), state_of(saved.step));
  pass(saved);
  pass(loaded);
  EXPECT_EQ(results_of(loaded.step), results_of(saved.step));
}

}  // namespace
}  // namespace graphproof::workloads::fp8_scaling_test

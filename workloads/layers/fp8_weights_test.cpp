#include "workloads/layers/fp8_weights.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "workloads/testing/step_under_test.h"
#include "workloads/training/checkpoint.h"

namespace graphproof::workloads::fp8_weights_test {
namespace {

ModelConfig dense() {
  return {.layers = 3,
          .hidden = 32,
          .heads = 4,
          .ffn = 64,
          .vocab = 64,
          .seq_length = 8,
          .microbatches = 3,
          .qkv_bias = true,
          .linear_bias = true,
          .fp8_weights = true};
}
ModelConfig with_experts() {
  ModelConfig config = dense();
  config.experts = 4;
  config.topk = 2;
  config.shared_expert = true;
  return config;
}
ModelConfig hybrid() {
  ModelConfig config = dense();
  config.layers = 4;
  config.hybrid = true;
  return config;
}
const std::map<std::string, ModelConfig (*)()> kModels{
    {"dense", dense}, {"experts", with_experts}, {"hybrid", hybrid}};

using Values = std::map<std::string, std::vector<float>>;

Values values_of(const std::vector<NamedTensor>& tensors, const std::string& prefix = "") {
  Values values;
  for (const auto& [name, tensor] : tensors)
    if (name.starts_with(prefix)) values[name] = on_host(tensor);
  return values;
}

/// Gradients, parameters and losses after a step.
Values results_of(TrainStep& step) {
  Values values = values_of(step.gradients());
  values.merge(values_of(step.parameters()));
  values["losses"] = on_host(step.losses());
  return values;
}

void pass(StepUnderTest& bench) {
  const c10::StreamGuard guard(bench.stream);
  bench.step.forward_backward(bench.batch);
}

void train(StepUnderTest& bench, const ModelConfig& config, std::int64_t index) {
  const c10::StreamGuard guard(bench.stream);
  bench.step.learning_rate(0.1);
  bench.step.forward_backward(
      make_batch(config, {}, StepUnderTest::kSeed, index, bench.device.torch_device()));
  bench.step.optimizer_step();
}

// All numbers of e4m3, from its definition: sign, 4 bits of exponent with bias 7, 3 bits of
// mantissa, no infinity.
std::vector<double> numbers_of_e4m3() {
  std::vector<double> numbers;
  for (int exponent = 0; exponent < 16; ++exponent)
    for (int mantissa = 0; mantissa < 8; ++mantissa) {
      if (exponent == 15 && mantissa == 7) continue;  // NaN
      const double value =
          exponent == 0 ? std::ldexp(mantissa, -9) : std::ldexp(8 + mantissa, exponent - 10);
      numbers.insert(numbers.end(), {value, -value});
    }
  return numbers;
}

TEST(Fp8Weights, AreTheNearestNumbersOfE4m3UnderTheScaleOfTheirPart) {
  const std::vector<double> numbers = numbers_of_e4m3();
  const at::Tensor weight = at::empty({4, 6});
  float* elements = weight.mutable_data_ptr<float>();
  for (int i = 0; i < 24; ++i)
    elements[i] = static_cast<float>(std::sin(1.0 + i) * std::pow(10.0, i / 6 - 2));
  for (const auto& [dimension, parts] : {std::pair{0, 1}, std::pair{0, 2}, std::pair{1, 3}}) {
    const std::vector<float> rounded = on_host(rounded_to_e4m3(weight, dimension, parts));
    for (int i = 0; i < 24; ++i) {
      const auto part_of = [&](int element) {
        return (dimension == 0 ? element / 6 : element % 6) / ((dimension == 0 ? 4 : 6) / parts);
      };
      double largest = 0;
      for (int j = 0; j < 24; ++j)
        if (part_of(j) == part_of(i))
          largest = std::max(largest, std::abs(static_cast<double>(elements[j])));
      const double scaled = elements[i] * 448 / largest;
      const double nearest = *std::min_element(
          numbers.begin(), numbers.end(),
          [&](double a, double b) { return std::abs(a - scaled) < std::abs(b - scaled); });
      // The tolerance covers the two roundings of the scaling and its inverse in fp32.
      EXPECT_NEAR(rounded[static_cast<std::size_t>(i)], nearest * largest / 448,
                  2 * std::ldexp(std::abs(nearest) * largest / 448, -24))
          << "element " << i;
    }
  }
  EXPECT_EQ(on_host(rounded_to_e4m3(at::zeros({2, 2}), 0, 1)), std::vector<float>(4, 0))
      << "the scale of zeros is finite";
  const at::Tensor experts = at::stack({weight, 100 * weight});
  EXPECT_EQ(on_host(rounded_to_e4m3(experts, 1, 2)[1]),
            on_host(rounded_to_e4m3(100 * weight, 0, 2)))
      << "each expert has its own scales";
}

// This is what the axis means, apart from when the copies are made: the losses and gradients are
// those of a model whose weights are the copies.
TEST(Fp8Weights, GiveTheBitsOfAModelWhoseWeightsAreTheCopies) {
  for (const auto& [name, make] : kModels)
    for (const bool fused : {false, true}) {
      ModelConfig config = make(), plain = make();
      config.grad_accumulation_fusion = plain.grad_accumulation_fusion = fused;
      plain.fp8_weights = false;
      StepUnderTest rounded(config), other(plain);
      pass(rounded);
      const Values copies = values_of(rounded.step.ledgers(), "fp8:");
      std::size_t replaced = 0;
      for (const auto& [parameter, tensor] : other.step.parameters())
        for (const auto& [copy, from] : rounded.step.ledgers())
          if (copy == "fp8:" + parameter.substr(6)) {
            EXPECT_NE(on_host(tensor), copies.at(copy)) << copy;
            tensor.detach().copy_(from);
            ++replaced;
          }
      EXPECT_EQ(replaced + 1, copies.size())
          << "each copy has a parameter; the other tensor is the count";
      pass(other);
      EXPECT_EQ(values_of(rounded.step.gradients()), values_of(other.step.gradients()))
          << name << fused;
      EXPECT_EQ(on_host(rounded.step.losses()), on_host(other.step.losses())) << name << fused;
    }
}

/// A runner with which the copies are made in every microbatch, as without the cache.
struct MakesAlways : ModuleRunner {
  std::vector<at::Tensor> run(const ModuleCall&, const std::vector<at::Tensor>& inputs,
                              const std::vector<at::Tensor>&, const ModuleBody& body) override {
    return body(inputs);
  }
  bool captures_parts() const override { return true; }
};

TEST(Fp8Weights, KeptCopiesGiveTheBitsOfCopiesMadeInEveryMicrobatch) {
  for (const auto& [name, make] : kModels) {
    const ModelConfig config = make();
    StepUnderTest kept(config), always(config);
    MakesAlways runner;
    always.step.module_runner(&runner);
    always.step.recording(true);
    always.step.set_first_microbatch(true);
    for (std::int64_t i = 0; i < 3; ++i) {
      train(kept, config, i);
      train(always, config, i);
      EXPECT_EQ(results_of(kept.step), results_of(always.step)) << name << " step " << i;
      auto once = values_of(kept.step.ledgers(), "fp8:made").at("fp8:made");
      for (float& made : once) made *= static_cast<float>(config.microbatches);
      EXPECT_EQ(values_of(always.step.ledgers(), "fp8:made").at("fp8:made"), once) << name;
    }
    always.step.module_runner(nullptr);
  }
}

// Both copies of a weight with a scale for each block are kept: those of its rows, which the
// forward reads, and those of its columns.
TEST(Fp8Weights, KeptCopiesOfBlocksGiveTheBitsOfCastsInEveryMicrobatch) {
  for (const auto& [name, make] : kModels)
    for (const Precision precision : {Precision::mxfp8, Precision::nvfp4}) {
      ModelConfig config = make(), each_time = make();
      config.precision = each_time.precision = precision;
      each_time.fp8_weights = false;
      StepUnderTest kept(config), always(each_time);
      for (std::int64_t i = 0; i < 3; ++i) {
        train(kept, config, i);
        train(always, each_time, i);
        EXPECT_EQ(results_of(kept.step), results_of(always.step)) << name << " step " << i;
      }
      const Values copies = values_of(kept.step.ledgers(), "fp8:layers.1.");
      EXPECT_FALSE(copies.empty());
      for (const auto& [copy, values] : copies)
        EXPECT_TRUE(std::any_of(values.begin(), values.end(), [](float one) { return one != 0; }))
            << copy;
    }
}

// Each of the precisions computes other numbers. The bounds are the half distance of neighbours,
// 2^-9 in bf16, 2^-4 in e4m3 and 2^-2 in e2m1, of losses near log(64) that average over tokens.
TEST(Fp8Weights, OfBlocksChangeTheLossByTheRoundingOfTheirNumbers) {
  const auto losses = [](Precision precision) {
    ModelConfig config = dense();
    config.fp8_weights = false;
    config.precision = precision;
    StepUnderTest bench(config);
    pass(bench);
    return bench.step.losses().to(at::kDouble).mean().item<double>();
  };
  const double exact = losses(Precision::fp32), bf16 = std::abs(losses(Precision::bf16) - exact),
               mxfp8 = std::abs(losses(Precision::mxfp8) - exact),
               nvfp4 = std::abs(losses(Precision::nvfp4) - exact);
  EXPECT_GT(mxfp8, bf16);
  EXPECT_GT(nvfp4, mxfp8);
  EXPECT_LT(mxfp8, std::ldexp(exact, -4));
  EXPECT_LT(nvfp4, std::ldexp(exact, -2));
}

TEST(Fp8Weights, AreMadeOnceAStepFromTheWeightsOfThatStepWithAnyRecompute) {
  for (const auto& [name, make] : kModels)
    for (const RecomputeConfig& recompute :
         {RecomputeConfig{}, full(RecomputeConfig::Method::uniform, 1),
          selective({RecomputedPart::mlp}), selective({RecomputedPart::moe}),
          selective({RecomputedPart::shared_experts, RecomputedPart::moe_act})}) {
      ModelConfig config = make();
      config.recompute = recompute;
      if (recompute.of(RecomputedPart::mlp) && config.experts > 0) continue;
      if ((recompute.of(RecomputedPart::moe) || recompute.of(RecomputedPart::moe_act)) &&
          config.experts == 0)
        continue;
      StepUnderTest bench(config);
      for (std::int64_t i = 0; i < 2; ++i) {
        Values wanted;
        const auto copies = values_of(bench.step.ledgers(), "fp8:layers.");
        for (const auto& [parameter, tensor] : bench.step.parameters()) {
          const std::string copy = "fp8:" + parameter.substr(6);
          if (copies.contains(copy))
            wanted[copy] = on_host(rounded_to_e4m3(tensor, tensor.dim() - 1, 1));
        }
        train(bench, config, i);
        EXPECT_EQ(values_of(bench.step.ledgers(), "fp8:layers."), wanted) << name << " step " << i;
        std::vector<float> made;
        for (std::int64_t layer = 0; layer < config.layers; ++layer)
          made.push_back(config.mamba(layer) ? 2.0f : config.experts > 0 ? 6.0f : 4.0f);
        EXPECT_EQ(on_host(copies_made(bench.step.ledgers())), made) << name << " step " << i;
      }
    }
}

TEST(Fp8Weights, LeaveTheFirstAndLastLayerUnroundedWithFirstLastLayersBf16) {
  ModelConfig config = dense();
  config.first_last_layers_bf16 = true;
  StepUnderTest bench(config);
  pass(bench);
  EXPECT_EQ(on_host(copies_made(bench.step.ledgers())), (std::vector<float>{0, 4, 0}));
  for (const auto& [copy, values] : values_of(bench.step.ledgers(), "fp8:layers."))
    EXPECT_TRUE(copy.starts_with("fp8:layers.1.")) << copy;
  ModelConfig none = config;
  none.layers = config.layers = 2;
  none.fp8_weights = none.first_last_layers_bf16 = false;
  StepUnderTest ends(config), plain(none);
  pass(ends);
  pass(plain);
  EXPECT_EQ(results_of(ends.step), results_of(plain.step))
      << "a model of these two layers equals one without the axis";
}

TEST(Fp8Weights, AreMadeAnewInAnEvaluationAndAgainInTheNextStep) {
  const ModelConfig config = dense();
  StepUnderTest watched(config), other(config);
  train(watched, config, 0);
  train(other, config, 0);
  watched.step.evaluate(watched.batch);
  const auto evaluated = on_host(watched.step.evaluation_losses());
  pass(watched);
  EXPECT_EQ(evaluated, on_host(watched.step.losses()));
  pass(other);
  EXPECT_EQ(results_of(watched.step), results_of(other.step));
  EXPECT_EQ(values_of(watched.step.ledgers()), values_of(other.step.ledgers()));
}

TEST(Fp8Weights, AreNotPartOfACheckpoint) {
  const ModelConfig config = dense();
  StepUnderTest saved(config), fresh(config);
  train(saved, config, 0);
  const Checkpoint checkpoint(saved.step);
  for (std::int64_t i = 5; i < 7; ++i) train(fresh, config, i);  // copies of other weights
  checkpoint.load_into(fresh.step);
  train(saved, config, 1);
  train(fresh, config, 1);
  EXPECT_EQ(results_of(saved.step), results_of(fresh.step));
  EXPECT_EQ(values_of(saved.step.ledgers()), values_of(fresh.step.ledgers()));
}

TEST(Fp8Weights, PassGradientsToBf16AndFp16Weights) {
  for (const Precision precision : {Precision::bf16, Precision::fp16}) {
    ModelConfig config = dense();
    config.precision = precision;
    StepUnderTest bench(config);
    pass(bench);
    for (const auto& [name, values] : values_of(bench.step.gradients(), "grad:layers."))
      EXPECT_TRUE(std::any_of(values.begin(), values.end(), [](float value) { return value != 0; }))
          << name;
  }
}

}  // namespace
}  // namespace graphproof::workloads::fp8_weights_test

#include "workloads/training/optimizer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "workloads/faults/plant.h"
#include "workloads/parameters/draw.h"
#include "workloads/testing/device_under_test.h"

namespace graphproof::workloads {
namespace {

using fixtures::Fault;

/// Two parameters with a gradient that changes from step to step, and an optimizer over them.
struct Bench {
  explicit Bench(OptimizerKind kind, at::ScalarType type = at::kFloat, Fault fault = Fault::none)
      : Bench(ModelConfig{.optimizer = kind}, type, fault) {}
  explicit Bench(const ModelConfig& config, at::ScalarType type = at::kFloat,
                 Fault fault = Fault::none)
      : device(device_under_test()),
        stream(device.stream_from_pool()),
        guard(stream),
        parameters(3, device.torch_device(), type),
        gradients(fill(parameters)),
        faults(faults::plant(fault)),
        optimizer(config, {}, parameters, gradients, *faults) {}

  static const Parameters& fill(Parameters& parameters) {
    parameters.create("a", {7, 9}, {}, {0.0, 1.0});
    parameters.create("b", {130}, {}, {1.0, 0.5});
    return parameters;
  }
  /// Element i of the gradient of parameter p in step k, between -1 and 1; every eleventh is zero.
  static float gradient(std::size_t p, std::int64_t i, int k) {
    return i % 11 == 3 ? 0.0f : Draw(17, std::to_string(p) + "." + std::to_string(k)).uniform(i);
  }
  void step(int k, double rate) {
    for (std::size_t p = 0; p < 2; ++p) {
      at::Tensor target = gradients.views()[p].tensor, values = at::empty(target.sizes());
      for (std::int64_t i = 0; i < values.numel(); ++i)
        values.mutable_data_ptr<float>()[i] = gradient(p, i, k);
      target.copy_(values.to(device.torch_device()));
    }
    optimizer.learning_rate(rate);
    optimizer.step();
  }
  std::vector<float> parameter(std::size_t p) const { return on_host(parameters.all()[p].tensor); }
  std::vector<float> state(const std::string& name) const {
    for (const auto& tensor : optimizer.state())
      if (tensor.name == name) return on_host(tensor.tensor);
    ADD_FAILURE() << "no state " << name;
    return {};
  }

  capture::Device& device;
  c10::Stream stream;
  c10::StreamGuard guard;
  Parameters parameters;
  GradientBuffer gradients;
  std::shared_ptr<faults::FaultHooks> faults;
  Optimizer optimizer;
};

TEST(Optimizer, GradientDescentSubtractsRateTimesGradient) {
  Bench bench(OptimizerKind::sgd);
  const auto before = bench.parameter(1);
  bench.step(0, 0.25);
  const auto after = bench.parameter(1);
  for (std::size_t i = 0; i < after.size(); ++i)
    EXPECT_FLOAT_EQ(after[i],
                    before[i] - 0.25f * Bench::gradient(1, static_cast<std::int64_t>(i), 0));
  EXPECT_TRUE(bench.optimizer.state().empty());
}

TEST(Optimizer, AdamEqualsItsDefinitionInDoublePrecision) {
  Bench bench(OptimizerKind::adam);
  for (std::size_t p = 0; p < 2; ++p) {
    std::vector<double> m(bench.parameter(p).size(), 0), v = m, x;
    for (const float value : bench.parameter(p)) x.push_back(value);
    Bench run(OptimizerKind::adam);
    for (int k = 0; k < 6; ++k) {
      const double rate = 0.01 / (1 + k);
      run.step(k, rate);
      for (std::size_t i = 0; i < x.size(); ++i) {
        const double g = Bench::gradient(p, static_cast<std::int64_t>(i), k);
        m[i] = 0.9 * m[i] + 0.1 * g;
        v[i] = 0.999 * v[i] + 0.001 * g * g;
        x[i] -= rate * (m[i] / (1 - std::pow(0.9, k + 1))) /
                (std::sqrt(v[i] / (1 - std::pow(0.999, k + 1))) + 1e-8);
      }
      const auto got = run.parameter(p);
      // Each step rounds the parameter, which is at most 2, once: half an ulp is 2^-24. All other
      // errors are far smaller.
      for (std::size_t i = 0; i < x.size(); ++i)
        ASSERT_NEAR(got[i], x[i], (k + 2) * std::ldexp(1.0, -23)) << k << " " << i;
    }
    EXPECT_EQ(run.state("state:adam.step"), std::vector<float>{6});
  }
}

TEST(Optimizer, AdamStartsFromZeroStateAndLeavesAParameterWithoutGradientAlone) {
  Bench bench(OptimizerKind::adam);
  for (const auto& tensor : bench.optimizer.state())
    for (const float value : on_host(tensor.tensor)) ASSERT_EQ(value, 0) << tensor.name;
  const auto before = bench.parameter(1);
  bench.step(0, 0.1);
  const auto after = bench.parameter(1);
  for (std::size_t i = 0; i < after.size(); ++i) EXPECT_EQ(after[i] == before[i], i % 11 == 3) << i;
}

TEST(Optimizer, NamesItsStateByParameter) {
  const Bench bench(OptimizerKind::adam, at::kBFloat16);
  std::vector<std::string> names;
  for (const auto& tensor : bench.optimizer.state()) names.push_back(tensor.name);
  EXPECT_EQ(names, (std::vector<std::string>{"state:master.a", "state:master.b", "state:adam.m.a",
                                             "state:adam.m.b", "state:adam.v.a", "state:adam.v.b",
                                             "state:adam.step"}));
}

TEST(Optimizer, MovesFp32MastersOfBf16ParametersAndRoundsThem) {
  for (const OptimizerKind kind : {OptimizerKind::sgd, OptimizerKind::adam}) {
    Bench bench(kind, at::kBFloat16);
    const auto start = bench.state("state:master.b");
    EXPECT_EQ(start, bench.parameter(1));
    // Each update is far below half an ulp of bf16, so without a master copy the parameter would
    // never change.
    for (int k = 0; k < 40; ++k) bench.step(0, 1e-4);
    const auto masters = bench.state("state:master.b"), rounded = bench.parameter(1);
    bool moved = false;
    for (std::size_t i = 0; i < masters.size(); ++i) {
      EXPECT_EQ(rounded[i], static_cast<float>(c10::BFloat16(masters[i])));
      moved |= rounded[i] != start[i];
    }
    EXPECT_TRUE(moved);
    EXPECT_EQ(bench.optimizer.updated()[1].moved.name, "state:master.b");
  }
}

ModelConfig fp16(OptimizerKind kind, LossScaling scaling = LossScaling::dynamic) {
  return {.precision = Precision::fp16, .loss_scaling = scaling, .optimizer = kind};
}

/// A step with gradients multiplied by the loss scale, one of them infinite if `infinite`.
void scaled_step(Bench& bench, int k, bool infinite) {
  const double scale = bench.state("state:loss_scale.scale")[0];
  for (std::size_t p = 0; p < 2; ++p) {
    at::Tensor target = bench.gradients.views()[p].tensor, values = at::empty(target.sizes());
    for (std::int64_t i = 0; i < values.numel(); ++i)
      values.mutable_data_ptr<float>()[i] = static_cast<float>(scale * Bench::gradient(p, i, k));
    if (infinite && p == 1)
      values.mutable_data_ptr<float>()[7] = std::numeric_limits<float>::infinity();
    target.copy_(values.to(bench.device.torch_device()));
  }
  bench.optimizer.learning_rate(0.01);
  bench.optimizer.step();
}

TEST(LossScale, HalvesAndSkipsTheStepWhereAGradientIsInfiniteAndGrowsOtherwise) {
  for (const OptimizerKind kind : {OptimizerKind::sgd, OptimizerKind::adam}) {
    Bench bench(fp16(kind), at::kHalf);
    const float start = bench.state("state:loss_scale.scale")[0];
    // Inf, inf, good, inf, good: halved twice, doubled, halved, doubled.
    const std::vector<bool> infinite{true, true, false, true, false};
    std::vector<float> scales;
    std::vector<bool> moved, found;
    for (std::size_t k = 0; k < infinite.size(); ++k) {
      const auto before = bench.state("state:master.b"), half = bench.parameter(1);
      scaled_step(bench, static_cast<int>(k), infinite[k]);
      scales.push_back(bench.state("state:loss_scale.scale")[0] / start);
      moved.push_back(bench.state("state:master.b") != before);
      found.push_back(on_host(bench.optimizer.skipped().to(at::kFloat))[0] != 0);
      if (infinite[k]) {
        EXPECT_EQ(bench.parameter(1), half);
      }
    }
    EXPECT_EQ(scales, (std::vector<float>{0.5, 0.25, 0.5, 0.25, 0.5}));
    EXPECT_EQ(moved, (std::vector<bool>{false, false, true, false, true}));
    EXPECT_EQ(found, infinite);
    EXPECT_EQ(bench.state("state:loss_scale.skipped"), std::vector<float>{3});
    if (kind == OptimizerKind::adam) {
      EXPECT_EQ(bench.state("state:adam.step"), std::vector<float>{2});
    }
    for (const auto& tensor : bench.optimizer.state())
      for (const float value : on_host(tensor.tensor))
        ASSERT_TRUE(std::isfinite(value)) << tensor.name;
  }
}

TEST(LossScale, IsTakenOutOfTheGradientsBeforeTheyAreUsed) {
  Bench scaled(fp16(OptimizerKind::adam, LossScaling::static_), at::kHalf),
      plain(OptimizerKind::adam, at::kHalf);
  for (int k = 0; k < 3; ++k) {
    scaled_step(scaled, k, false);
    plain.step(k, 0.01);
  }
  EXPECT_EQ(scaled.parameter(0), plain.parameter(0)) << "a power of two changes no bit";
  EXPECT_EQ(scaled.state("state:loss_scale.scale")[0],
            static_cast<float>(
                loss_scale_constants(fp16(OptimizerKind::adam, LossScaling::static_)).initial));
}

TEST(GradientClip, ScalesGradientsToTheLargestNormAndLeavesSmallOnesAlone) {
  Bench clipped(ModelConfig{.clip_grad = true}), plain(OptimizerKind::sgd);
  double squares = 0;
  for (std::size_t p = 0; p < 2; ++p)
    for (std::int64_t i = 0; i < (p == 0 ? 63 : 130); ++i)
      squares += std::pow(static_cast<double>(Bench::gradient(p, i, 0)), 2);
  ASSERT_GT(squares, 1) << "another seed: nothing would be clipped";
  clipped.step(0, 1.0);
  EXPECT_NEAR(clipped.state("state:clip.norm")[0], std::sqrt(squares), 1e-5);
  double after = 0;
  for (const auto& view : clipped.gradients.views())
    for (const float value : on_host(view.tensor)) after += static_cast<double>(value) * value;
  EXPECT_NEAR(std::sqrt(after), kLargestGradientNorm, 1e-5);
  at::Tensor(clipped.gradients.flat()).mul_(0.5);
  const auto small = on_host(clipped.gradients.flat());
  clipped.optimizer.step();
  EXPECT_EQ(on_host(clipped.gradients.flat()), small);
}

TEST(WeightDecay, ShrinksMatricesByTheRateAndNothingElse) {
  Bench decayed(ModelConfig{.weight_decay = true}), plain(OptimizerKind::sgd);
  const auto before = decayed.parameter(0);
  decayed.step(0, 0.5);
  plain.step(0, 0.5);
  const auto with = decayed.parameter(0), without = plain.parameter(0);
  for (std::size_t i = 0; i < with.size(); ++i)
    EXPECT_NEAR(with[i], without[i] - 0.5 * kWeightDecay * before[i], 1e-6) << i;
  EXPECT_EQ(decayed.parameter(1), plain.parameter(1)) << "of one dimension: a norm or a bias";
  EXPECT_TRUE(decays({"param:layers.0.mlp.up.weight", at::zeros({2, 2})}));
  EXPECT_FALSE(decays({"param:layers.0.mlp.experts.up.bias", at::zeros({4, 1, 8})}));
}

// In eager steps the fault changes nothing, because only a capture freezes a number of the host.
TEST(Optimizer, FaultM24CountsOnWhileEager) {
  Bench sound(OptimizerKind::adam),
      faulty(OptimizerKind::adam, at::kFloat, Fault::adam_step_by_value);
  for (int k = 0; k < 4; ++k) {
    sound.step(k, 0.01);
    faulty.step(k, 0.01);
    EXPECT_EQ(sound.parameter(0), faulty.parameter(0));
  }
}

}  // namespace
}  // namespace graphproof::workloads

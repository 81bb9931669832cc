#include "workloads/optimizer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "workloads/device_under_test.h"
#include "workloads/draw.h"

namespace graphproof::workloads {
namespace {

/// Two parameters with a gradient that changes from step to step, and an optimizer over them.
struct Bench {
  explicit Bench(OptimizerKind kind, at::ScalarType type = at::kFloat, const std::string& fault = "none")
      : device(device_under_test()),
        stream(device.stream_from_pool()),
        guard(stream),
        parameters(3, device.torch_device(), type),
        gradients(fill(parameters)),
        optimizer(kind, parameters, gradients, {fault}) {}

  static const Parameters& fill(Parameters& parameters) {
    parameters.create("a", {7, 9}, {}, {0.0, 1.0});
    parameters.create("b", {130}, {}, {1.0, 0.5});
    return parameters;
  }
  /// Element i of parameter p at step k, between -1 and 1; every eleventh is zero.
  static float gradient(std::size_t p, std::int64_t i, int k) {
    return i % 11 == 3 ? 0.0f : Draw(17, std::to_string(p) + "." + std::to_string(k)).uniform(i);
  }
  void step(int k, double rate) {
    for (std::size_t p = 0; p < 2; ++p) {
      at::Tensor target = gradients.views()[p].tensor, values = at::empty(target.sizes());
      for (std::int64_t i = 0; i < values.numel(); ++i) values.mutable_data_ptr<float>()[i] = gradient(p, i, k);
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
  Optimizer optimizer;
};

TEST(Optimizer, GradientDescentSubtractsRateTimesGradient) {
  Bench bench(OptimizerKind::sgd);
  const auto before = bench.parameter(1);
  bench.step(0, 0.25);
  const auto after = bench.parameter(1);
  for (std::size_t i = 0; i < after.size(); ++i)
    EXPECT_FLOAT_EQ(after[i], before[i] - 0.25f * Bench::gradient(1, static_cast<std::int64_t>(i), 0));
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
        x[i] -= rate * (m[i] / (1 - std::pow(0.9, k + 1))) / (std::sqrt(v[i] / (1 - std::pow(0.999, k + 1))) + 1e-8);
      }
      const auto got = run.parameter(p);
      // Each step rounds the parameter, of size 2 at most, once: half an ulp of it, 2^-24; the rest is far smaller.
      for (std::size_t i = 0; i < x.size(); ++i) ASSERT_NEAR(got[i], x[i], (k + 2) * std::ldexp(1.0, -23)) << k << " " << i;
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
  EXPECT_EQ(names, (std::vector<std::string>{"state:master.a", "state:master.b", "state:adam.m.a", "state:adam.m.b",
                                             "state:adam.v.a", "state:adam.v.b", "state:adam.step"}));
}

TEST(Optimizer, MovesFp32MastersOfBf16ParametersAndRoundsThem) {
  for (const OptimizerKind kind : {OptimizerKind::sgd, OptimizerKind::adam}) {
    Bench bench(kind, at::kBFloat16);
    const auto start = bench.state("state:master.b");
    EXPECT_EQ(start, bench.parameter(1));
    // Far below half an ulp of bf16 each: the parameter alone would never move.
    for (int k = 0; k < 40; ++k) bench.step(0, 1e-4);
    const auto masters = bench.state("state:master.b"), rounded = bench.parameter(1);
    bool moved = false;
    for (std::size_t i = 0; i < masters.size(); ++i) {
      EXPECT_EQ(rounded[i], static_cast<float>(c10::BFloat16(masters[i])));
      moved |= rounded[i] != start[i];
    }
    EXPECT_TRUE(moved);
    EXPECT_EQ(bench.optimizer.updated()[1].name, "state:master.b");
  }
}

// Planted in eager steps it changes nothing: only a capture freezes a host's number.
TEST(Optimizer, FaultM24CountsOnWhileEager) {
  Bench sound(OptimizerKind::adam), faulty(OptimizerKind::adam, at::kFloat, "M24");
  for (int k = 0; k < 4; ++k) {
    sound.step(k, 0.01);
    faulty.step(k, 0.01);
    EXPECT_EQ(sound.parameter(0), faulty.parameter(0));
  }
}

}  // namespace
}  // namespace graphproof::workloads

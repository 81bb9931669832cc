#include "suites/case/learning_rate.h"

#include <gtest/gtest.h>

#include <cmath>

namespace graphproof::suites {
namespace {

at::Tensor noise(std::int64_t size, std::uint64_t seed, double scale) {
  auto generator = at::detail::createCPUGenerator(seed);
  return at::randn({size}, generator) * scale;
}

using workloads::OptimizerKind;

TEST(LearningRate, ChangesInEveryStep) {
  for (const OptimizerKind optimizer : {OptimizerKind::sgd, OptimizerKind::adam}) {
    const LearningRateSchedule& schedule = learning_rate_schedule(optimizer);
    for (std::int64_t step = 1; step < 1000; ++step) {
      EXPECT_NE(schedule.at(step), schedule.at(step - 1)) << step;
      EXPECT_GT(schedule.at(step), 0) << step;
    }
  }
  EXPECT_DOUBLE_EQ(learning_rate_schedule(OptimizerKind::sgd).at(0), 0.1);
  EXPECT_DOUBLE_EQ(learning_rate_schedule(OptimizerKind::sgd).at(2), 0.09);
  EXPECT_DOUBLE_EQ(learning_rate_schedule(OptimizerKind::adam).at(2), 0.0009);
}

TEST(LearningRate, OfAnUpdateIsFoundWithinItsOwnBound) {
  for (const double rate : {0.1, 0.095, 0.01, 1e-4}) {
    const at::Tensor before = noise(4096, 1, 0.5), gradient = noise(4096, 2, 1e-3);
    const at::Tensor after = before - at::scalar_tensor(rate, at::kFloat) * gradient;
    const EffectiveRate effective =
        effective_learning_rate(before, after, sgd_direction(gradient), rate);
    EXPECT_LE(std::abs(effective.rate - rate), effective.bound) << rate;
  }
}

TEST(LearningRate, BoundIsFarBelowOneStepOfTheSchedule) {
  const at::Tensor before = noise(4096, 1, 0.5), gradient = noise(4096, 2, 1e-3);
  const EffectiveRate effective =
      effective_learning_rate(before, before - 0.1f * gradient, sgd_direction(gradient), 0.1);
  EXPECT_LT(effective.bound * 10, learning_rate_schedule(OptimizerKind::sgd).at(0) -
                                      learning_rate_schedule(OptimizerKind::sgd).at(1));
}

TEST(LearningRate, OfTheStepBeforeIsFarOutsideTheBound) {
  const at::Tensor before = noise(4096, 1, 0.5), gradient = noise(4096, 2, 1e-3);
  const auto frozen = static_cast<float>(learning_rate_schedule(OptimizerKind::sgd).at(2));
  const EffectiveRate effective =
      effective_learning_rate(before, before - frozen * gradient, sgd_direction(gradient),
                              learning_rate_schedule(OptimizerKind::sgd).at(3));
  EXPECT_GT(std::abs(effective.rate - learning_rate_schedule(OptimizerKind::sgd).at(3)),
            10 * effective.bound);
}

/// Steps of Adam in fp32 with random gradients. `counted` is the step number that the bias
/// correction uses.
struct AdamRun {
  at::Tensor m = at::zeros({4096}), v = at::zeros({4096}), parameter = noise(4096, 1, 0.5);
  EffectiveRate effective;

  void step(std::int64_t steps, std::int64_t counted, double rate) {
    const at::Tensor before = parameter.clone(),
                     g = noise(4096, 100 + static_cast<std::uint64_t>(steps), 1e-3);
    m.mul_(0.9).add_(g, 0.1);
    v.mul_(0.999).addcmul_(g, g, 0.001);
    const auto count = static_cast<double>(counted);
    const auto second = static_cast<float>(std::sqrt(1 - std::pow(0.999, count)));
    const auto scaled = static_cast<float>(static_cast<float>(rate) / (1 - std::pow(0.9, count)));
    parameter.sub_(m / (v.sqrt() / second + 1e-8) * scaled);
    effective = effective_learning_rate(before, parameter, adam_direction(m, v, steps), rate);
  }
};

TEST(LearningRate, OfAdamIsFoundWithinItsOwnBoundInEveryStep) {
  AdamRun run;
  for (std::int64_t step = 1; step <= 8; ++step) {
    const double rate = learning_rate_schedule(OptimizerKind::adam).at(step);
    run.step(step, step, rate);
    EXPECT_LE(std::abs(run.effective.rate - rate), run.effective.bound) << step;
    EXPECT_LT(run.effective.bound * 100, rate / 20)
        << "one step of the schedule is a twentieth of its start";
  }
}

TEST(LearningRate, OfAdamWithAFrozenStepNumberIsFarOutsideTheBound) {
  AdamRun run;
  for (std::int64_t step = 1; step <= 3; ++step) run.step(step, step, 0.001);
  for (std::int64_t step = 4; step <= 6; ++step) {
    run.step(step, 3, 0.001);
    EXPECT_GT(std::abs(run.effective.rate - 0.001), 1000 * run.effective.bound) << step;
  }
}

TEST(LearningRate, WithWeightDecayIsFoundWithinItsOwnBound) {
  constexpr double kDecay = 0.01;
  for (const double rate : {0.1, 0.01}) {
    const at::Tensor before = noise(4096, 1, 0.5), gradient = noise(4096, 2, 1e-3),
                     of_rate = at::scalar_tensor(rate, at::kFloat);
    at::Tensor after = before.clone();
    after.addcmul_(after, of_rate, -kDecay);
    after.sub_(of_rate * gradient);
    const EffectiveRate effective = effective_learning_rate(
        before, after, with_decay(sgd_direction(gradient), before, kDecay), rate);
    EXPECT_LE(std::abs(effective.rate - rate), effective.bound) << rate;
    const EffectiveRate without =
        effective_learning_rate(before, after, sgd_direction(gradient), rate);
    EXPECT_GT(std::abs(without.rate - rate), effective.bound)
        << "decay that was not configured is noticed";
  }
}

TEST(LearningRate, IsUnknownIfEveryGradientIsZero) {
  const at::Tensor before = noise(16, 1, 1);
  EXPECT_TRUE(std::isnan(
      effective_learning_rate(before, before, sgd_direction(at::zeros({16})), 0.1).rate));
}

}  // namespace
}  // namespace graphproof::suites

#include "suites/case/update_lines.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "workloads/testing/step_under_test.h"

namespace graphproof::suites {
namespace {

using workloads::ModelConfig;

/// The error of the third update, after which `spoil` changed what it left.
UpdateError after(const ModelConfig& model,
                  const std::function<void(workloads::TrainStep&)>& spoil = {}) {
  constexpr double kRate = 0.01;
  workloads::StepUnderTest test(model);
  UpdateError error;
  for (std::int64_t index = 0; index < 3; ++index) {
    test.step.learning_rate(kRate);
    test.step.forward_backward(test.batch);
    const UpdatesBefore before = look_before_updates(test.step);
    test.step.optimizer_step();
    if (index == 2 && spoil) {
      const at::NoGradGuard no_grad;
      spoil(test.step);
    }
    std::int64_t skipped = 0;
    for (const fixtures::NamedTensor& state : test.step.optimizer_state())
      if (state.name == "state:loss_scale.skipped") skipped = state.tensor.item<std::int64_t>();
    error = update_error(test.step, before, kRate, index + 1 - skipped);
    if (index < 2) {
      EXPECT_LE(error.error, error.bound) << error.worst << " in step " << index;
    }
  }
  return error;
}

std::vector<ModelConfig> models() {
  std::vector<ModelConfig> all;
  for (const auto precision :
       {workloads::Precision::fp32, workloads::Precision::bf16, workloads::Precision::fp16})
    for (const auto optimizer : {workloads::OptimizerKind::sgd, workloads::OptimizerKind::adam})
      for (const bool more : {false, true}) {
        ModelConfig model;
        model.precision = precision;
        model.optimizer = optimizer;
        model.weight_decay = model.clip_grad = model.linear_bias = more;
        all.push_back(model);
      }
  return all;
}

TEST(UpdateLines, ASoundUpdateIsWithinItsBound) {
  for (const ModelConfig& model : models()) {
    const UpdateError error = after(model);
    EXPECT_LE(error.error, error.bound)
        << error.worst << " of precision " << static_cast<int>(model.precision) << ", optimizer "
        << static_cast<int>(model.optimizer) << ", decay " << model.weight_decay;
    EXPECT_GT(error.tensors, 10);
  }
}

TEST(UpdateLines, AnElementThatMovedOtherwiseIsNamed) {
  for (const ModelConfig& model : models()) {
    std::string name;
    const UpdateError error = after(model, [&](workloads::TrainStep& step) {
      const workloads::Updated& last = step.updated().back();
      name = last.moved.name;
      at::Tensor(last.moved.tensor).view({-1})[0] += 0.001;
    });
    EXPECT_GT(error.error, error.bound);
    // With 16 bits the parameter is then no longer its rounded master copy either.
    if (model.precision == workloads::Precision::fp32) {
      EXPECT_EQ(error.worst, name);
    }
  }
}

TEST(UpdateLines, AFrozenParameterThatMovedIsNamed) {
  ModelConfig model;
  model.encoder_layers = model.images = 1;
  model.freeze_vision_model = model.weight_decay = true;
  const UpdateError sound = after(model);
  EXPECT_LE(sound.error, sound.bound) << sound.worst;
  std::string name;
  const UpdateError error = after(model, [&](workloads::TrainStep& step) {
    name = step.frozen().back().name;
    at::Tensor(step.frozen().back().tensor).mul_(0.999);
  });
  EXPECT_GT(error.error, error.bound);
  EXPECT_EQ(error.worst, name);
}

TEST(UpdateLines, AMomentThatStandsStillIsNamed) {
  ModelConfig model;
  model.optimizer = workloads::OptimizerKind::adam;
  const UpdateError error = after(
      model, [](workloads::TrainStep& step) { at::Tensor(step.updated().front().v).mul_(0.999); });
  EXPECT_GT(error.error, error.bound);
}

TEST(UpdateLines, AParameterThatIsNotItsRoundedMasterCopyIsNamed) {
  ModelConfig model;
  model.precision = workloads::Precision::bf16;
  std::string name;
  const UpdateError error = after(model, [&](workloads::TrainStep& step) {
    const fixtures::NamedTensor last = step.parameters().back();
    name = last.name;
    at::Tensor(last.tensor).mul_(2);
  });
  EXPECT_GT(error.error, error.bound);
  EXPECT_EQ(error.worst, name);
}

}  // namespace
}  // namespace graphproof::suites

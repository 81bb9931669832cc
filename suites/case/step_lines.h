// Evidence lines about one step that look into the training step itself and past the engine: what
// the optimizer felt, whether recompute came to the same as its forward, where the experts' tokens
// went, how often weights were rounded.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <ATen/ATen.h>

#include "suites/case/case_scope.h"
#include "workloads/training/train_step.h"

namespace graphproof::suites {

/// What has to be looked at before a step, to tell what the step did.
struct StepBefore {
  at::Tensor watched;                    // a copy of the parameter whose movement is watched
  std::vector<std::int64_t> recomputes;  // of each layer; empty without recompute
  double loss_scale = 0;                 // of fp16
  std::int64_t losses_checked = 0, gradients_checked = 0;  // by the host
};
/// Reads device memory: waits for the device.
StepBefore look_before_step(workloads::TrainStep& step);

/// Writes the lines of step `index` of `arm`, which was run with `learning_rate`:
///   `knob`       of the learning rate; of Adam also of the step number; of fp16 of the loss scale;
///   of the host's NaN
///                checks, how many were asked for and made; of overlapped reduction, how many
///                buckets there are and began under backward
///   `recompute`  of a model that recomputes
///   `experts`    of a model with experts
///   `fp8_weights`  of a model that rounds weights
///   `schedule`   of a pipeline stage, or of a step that runs layer by layer
/// Every step of the arm so far must have gone through the optimizer: Adam's step number is index +
/// 1, less the steps that the loss scale skipped. Of a skipped step the rate that should be felt is
/// 0.
void write_step_lines(CaseScope& scope, const std::string& arm, std::int64_t index,
                      double learning_rate, workloads::TrainStep& step, const StepBefore& before);

}  // namespace graphproof::suites

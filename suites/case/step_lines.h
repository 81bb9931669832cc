// Evidence lines about one step that are read from the training step itself and not from the
// engine: the rates that the optimizer used, whether a recomputation had the results of its
// forward, which experts received tokens, how often weights were rounded.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <ATen/ATen.h>

#include "fixtures/device/product_log.h"
#include "suites/case/case_scope.h"
#include "workloads/training/train_step.h"

namespace graphproof::suites {

/// What is read before a step, for comparison after it.
struct StepBefore {
  at::Tensor watched;  // a copy of the parameter whose movement is measured
  /// How often each layer was recomputed so far; empty without recomputation.
  std::vector<std::int64_t> recomputes;
  double loss_scale = 0;  // only for fp16
  /// How many losses and gradients the host has checked for NaN so far.
  std::int64_t losses_checked = 0, gradients_checked = 0;
};
/// Waits for the device.
StepBefore look_before_step(workloads::TrainStep& step);

/// Writes the lines of step `index` of `arm`, which was run with `learning_rate`:
///   `hyperparameter`  the learning rate; with Adam also the step number; with fp16 the loss scale;
///                     how many NaN checks of the host were wanted and made; with overlapped
///                     reduction, how many buckets there are and how many were reduced during the
///                     backward
///   `recompute`       for a model that recomputes
///   `experts`         for a model with experts
///   `fp8_weights`     for a model that rounds weights
///   `schedule`        for a pipeline stage, or a step that runs layer by layer
/// REQUIRES: all earlier steps of the arm have called the optimizer. Adam's step number is then
/// index + 1, minus the steps that the loss scale skipped. A skipped step has an effective rate of
/// 0.
void write_step_lines(CaseScope& scope, const std::string& arm, std::int64_t index,
                      double learning_rate, workloads::TrainStep& step, const StepBefore& before);

/// Before a step of a case with offloaded activations: marks the host buffers, if there are any.
/// REQUIRES: the device has ended all steps before.
void mark_offload(workloads::TrainStep& step);
/// Writes the line `offload` of step `index`. Without buffers, which is a defect, it has zeros.
void write_offload(CaseScope& scope, const std::string& arm, std::int64_t index,
                   workloads::TrainStep& step);
/// Writes the line `products` of step `index`.
void write_products(CaseScope& scope, const std::string& arm, std::int64_t index,
                    const capture::ProductLog& log);

}  // namespace graphproof::suites

// Every update of the optimizer, computed again from what it started from. The learning rate that
// explains the movement of one parameter (learning_rate.h) says nothing of the others: of norms and
// biases that are not updated, of moments that stand still, of a rank that errs in a later step.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <string>
#include <vector>

#include "suites/case/case_scope.h"
#include "workloads/training/train_step.h"

namespace graphproof::suites {

/// Copies of what an update of a step starts from, in the order of TrainStep::updated(), and of the
/// parameters that it must not change, in that of TrainStep::frozen().
struct UpdatesBefore {
  std::vector<at::Tensor> moved, m, v, frozen;
};
/// Waits for nothing; the copies are on the device.
UpdatesBefore look_before_updates(workloads::TrainStep& step);

/// The tensor whose error is the largest share of its bound.
struct UpdateError {
  std::int64_t tensors = 0;
  std::string worst;
  double error = 0, bound = 0;
};
/// The errors of the update that followed `before`, with `learning_rate`, which was the one with
/// number `count` of those that were not skipped, from 1. Of a skipped step it is the movement,
/// which must be none. Waits for the device.
UpdateError update_error(workloads::TrainStep& step, const UpdatesBefore& before,
                         double learning_rate, std::int64_t count);

/// Writes the `updates` line of step `index` of `arm`. REQUIRES: all earlier steps of the arm have
/// called the optimizer.
void write_updates(CaseScope& scope, const std::string& arm, std::int64_t index,
                   double learning_rate, workloads::TrainStep& step, const UpdatesBefore& before);

}  // namespace graphproof::suites

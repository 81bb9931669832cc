// What a training job saves so that another goes on where it was: parameters, what the optimizer
// keeps, random numbers. Host copies, which outlive the model that they came from.
//
// Loading copies into the memory that is there, as Megatron-LM's load_state_dict: graphs that hold
// its addresses go on with the loaded values. (Loading by assignment
// is the planted fault weight_rebound.)
#pragma once

#include <ATen/ATen.h>

#include <vector>

#include "fixtures/tensors/named_tensor.h"
#include "workloads/training/train_step.h"

namespace graphproof::workloads {

class Checkpoint {
 public:
  /// Between two steps, outside captures. Waits for the device. With a distributed optimizer each
  /// rank saves what it owns, and with overlap_param_gather it holds other ranks' parameters as
  /// they were one step before: the next step gathers them.
  explicit Checkpoint(TrainStep& step);

  /// Enqueues on the current stream, between two steps, outside captures. `step` is of the same
  /// configuration and layout and of any seed; std::logic_error otherwise.
  void load_into(TrainStep& step) const;

 private:
  std::vector<fixtures::NamedTensor> tensors_;
  std::vector<at::Tensor> generators_;  // states; of the plain tracker none
};

}  // namespace graphproof::workloads

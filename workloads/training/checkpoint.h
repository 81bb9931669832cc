// What a training job saves so that another job can continue from it: parameters, optimizer state,
// random numbers. The copies are on the host and outlive the model that they came from.
//
// Loading copies into the existing memory, as Megatron-LM's load_state_dict does, so that graphs
// that hold its addresses continue with the loaded values. (Loading by assignment is the planted
// fault weight_rebound.)
#pragma once

#include <ATen/ATen.h>

#include <vector>

#include "fixtures/tensors/named_tensor.h"
#include "workloads/training/train_step.h"

namespace graphproof::workloads {

/// The state of one rank.
class Checkpoint {
 public:
  /// Copies the state of `step` between two steps, outside captures. Waits for the device. With the
  /// distributed optimizer each rank saves the state that it owns. With overlap_param_gather the
  /// parameters of other ranks are those of the step before, because only the next step gathers
  /// them.
  explicit Checkpoint(TrainStep& step);
  /// One that was read from a file: contents() of another one.
  explicit Checkpoint(std::vector<fixtures::NamedTensor> contents);

  /// All that the checkpoint holds, in host memory: parameters and optimizer state by their names,
  /// then the states of generators, named generator:INDEX.
  std::vector<fixtures::NamedTensor> contents() const;

  /// Enqueues the copies on the current stream, between two steps, outside captures. Throws
  /// std::logic_error unless `step` has the same configuration and layout; its seed may differ.
  void load_into(TrainStep& step) const;

 private:
  std::vector<fixtures::NamedTensor> tensors_;
  std::vector<at::Tensor> generators_;  // their states; empty with the plain tracker
};

}  // namespace graphproof::workloads

// Gradients averaged as PyTorch's DistributedDataParallel does it: its own c10d::Reducer and Logger
// (reducer.hpp, logger.hpp of LibTorch 2.11), called where DDP's forward and backward call them.
// What GradientReduction uses with overlap_grad_reduce where the data parallel group is PyTorch's
// (comm c10d) and no distributed optimizer asks for Megatron-LM's reduce-scatter.
//
// As DDP's defaults: buckets copy (gradient_as_bucket_view off), so every .grad stays where it is;
// each gradient is divided by the group's size before the sum; every parameter takes part in each
// step (find_unused_parameters off). Microbatches before the last one are inside no_sync: the
// reducer does not hear of them.
//
// A capture must wait for what the first steps do on the host. At the second, the buckets are cut
// anew in the order in which gradients came, by a broadcast that the host waits for; and before
// each of the first eleven ends, the logger reads the timers of the step before. So eleven eager
// steps come first (PyTorch's "CUDA semantics", usage with DistributedDataParallel), which rule
// G010 asks for where a graph holds the whole step. The buckets that were cut first stay alive in
// the watchdog's list until it looks next; begin_step() waits for that, or memory would fall at
// some later step.
#pragma once

#include <ATen/ATen.h>
#include <c10/util/intrusive_ptr.h>

#include <cstddef>
#include <memory>
#include <vector>

namespace c10d {
class Logger;
class ProcessGroup;
class Reducer;
}  // namespace c10d

namespace graphproof::workloads {

class DdpReduction {
 public:
  /// Hangs hooks on the parameters' gradient accumulators until it is destroyed. REQUIRES: the
  /// stream of the steps is current.
  ///   parameters  leaves on one device, whose gradients have their type; in the order of the model
  DdpReduction(std::vector<at::Tensor> parameters, c10::intrusive_ptr<c10d::ProcessGroup> group);
  ~DdpReduction();
  DdpReduction(const DdpReduction&) = delete;
  DdpReduction& operator=(const DdpReduction&) = delete;

  /// Before the forward of a step whose gradients are reduced.
  void begin_step();
  /// Before the backward after which they are complete. The end of that backward waits for the
  /// buckets on its stream and leaves the means in .grad.
  void begin_last_backward();

  std::size_t buckets() const;

 private:
  const c10::intrusive_ptr<c10d::ProcessGroup> group_;
  const std::shared_ptr<c10d::Reducer> reducer_;
  const std::shared_ptr<c10d::Logger> logger_;
};

}  // namespace graphproof::workloads

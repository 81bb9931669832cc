// Averages gradients with PyTorch's own DistributedDataParallel: its c10d::Reducer and Logger
// (reducer.hpp, logger.hpp of LibTorch 2.11) are called where DDP's forward and backward call them.
// GradientReduction uses it for overlap_grad_reduce if the data parallel group is PyTorch's (comm
// c10d), except with the distributed optimizer, which needs Megatron-LM's reduce-scatter.
//
// The settings are DDP's defaults. Buckets are copies (gradient_as_bucket_view off), so every .grad
// keeps its address. Each gradient is divided by the size of the group before the sum. Every
// parameter gets a gradient in each step (find_unused_parameters off). Microbatches before the last
// one run as in no_sync: the reducer does not see them.
//
// A capture must come after the host work of the first steps. In the second step the reducer
// rebuilds its buckets in the order in which gradients were ready, with a broadcast that the host
// waits for. In each of the first eleven steps the logger reads the timers of the step before.
// Therefore eleven eager steps come first (PyTorch's "CUDA semantics", usage with
// DistributedDataParallel); rule G010 requires them if a graph holds the whole step. The watchdog's
// list keeps the first buckets alive until its next check. begin_step() waits for that check,
// because otherwise memory would decrease in some later step.
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

/// The reduction of one rank. Used by the thread that runs the step; its hooks run on autograd's
/// threads.
class DdpReduction {
 public:
  /// Registers hooks on the gradient accumulators of the parameters, until it is destroyed.
  /// REQUIRES: the stream of the steps is current.
  ///   parameters  leaves on one device, in the order of the model; gradients have the same type
  DdpReduction(std::vector<at::Tensor> parameters, c10::intrusive_ptr<c10d::ProcessGroup> group);
  ~DdpReduction();
  DdpReduction(const DdpReduction&) = delete;
  DdpReduction& operator=(const DdpReduction&) = delete;

  /// Before the forward of a step whose gradients are reduced.
  void begin_step();
  /// Before the backward that completes the gradients. At its end the stream of that backward waits
  /// for the buckets, and the means are in .grad.
  void begin_last_backward();

  std::size_t buckets() const;

 private:
  const c10::intrusive_ptr<c10d::ProcessGroup> group_;
  const std::shared_ptr<c10d::Reducer> reducer_;
  const std::shared_ptr<c10d::Logger> logger_;
};

}  // namespace graphproof::workloads

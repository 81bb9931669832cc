// Activations in host memory (Megatron-LM's offloading of what linear layers read): the forward
// copies the input of each linear layer to pinned memory and keeps no other reference to it, and
// the backward copies it back. Both copies run on a side stream. In a capture they are nodes of the
// graph, so the buffers are static, and eager steps ahead of the capture make them (rule R090).
//
// One set of buffers serves all microbatches, because the backward of a microbatch ends before the
// forward of the next one begins, on a single pipeline stage (rule R111).
#pragma once

#include <c10/core/Event.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "fixtures/device/device.h"
#include "fixtures/tensors/torch.h"
#include "workloads/streams/side_stream.h"

namespace graphproof::workloads {

/// The host buffers of one rank. Used by one thread at a time; enqueues on the current stream and
/// on its side stream, and does not wait for the device.
class ActivationOffload {
 public:
  /// `faults` outlives it.
  ActivationOffload(capture::Device& device, faults::FaultHooks& faults);
  ActivationOffload(const ActivationOffload&) = delete;  // nodes of autograd refer to it
  ActivationOffload& operator=(const ActivationOffload&) = delete;

  /// The next activation is the first one of a microbatch.
  void begin() { next_ = 0; }
  /// Enqueues the copy of x [any] to the next buffer, and returns the number of that buffer. The
  /// memory of `x` is not reused before the copy has ended. Throws std::logic_error in a capture if
  /// there is no buffer of that shape and type.
  std::size_t keep(const at::Tensor& x);
  /// Enqueues the copy of a buffer to new device memory, for which the current stream waits.
  at::Tensor fetch(std::size_t buffer);
  /// Makes the current stream wait for the last copy to the host. Called after each forward.
  void finish();

  /// Fills the buffers with a mark that no activation has, and sets the count of copies back to
  /// zero. REQUIRES: the device has ended all copies.
  void mark();
  /// What has happened since mark(), in replays as in eager steps.
  struct Counts {
    std::int64_t buffers = 0;
    std::int64_t pinned = 0;   // those of them in pinned memory
    std::int64_t written = 0;  // those of them that no longer hold the mark
    std::int64_t fetched = 0;  // copies back to the device that the current stream has waited for
  };
  /// Waits for the current stream. REQUIRES: nothing else runs on the device.
  Counts counts() const;

  /// The buffers, in the order of the forward.
  const std::vector<at::Tensor>& buffers() const { return buffers_; }

 private:
  struct Copying {
    at::Tensor from;  // keeps the memory until the current stream waits for the copy
    c10::Event done;
  };

  capture::Device& device_;
  SideStream side_;
  std::vector<at::Tensor> buffers_;  // pinned
  at::Tensor fetched_;               // [] int64, on the device
  std::optional<Copying> copying_;
  std::size_t next_ = 0;
};

/// Returns x times weight^T, [N, O], differentiable in x [N, I] and weight [O, I]. `offload` keeps
/// what the backward needs of `x`, and outlives it.
at::Tensor offloaded_product(const at::Tensor& x, const at::Tensor& weight,
                             ActivationOffload& offload);

}  // namespace graphproof::workloads

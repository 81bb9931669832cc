// Keeps in device memory which microbatch of a step is running, because a graph that is captured in
// one microbatch is replayed in others.
#pragma once

#include <cstdint>
#include <vector>

#include "fixtures/tensors/torch.h"

namespace graphproof::workloads {

/// Methods enqueue on the current stream and may be captured.
class RunningMicrobatch {
 public:
  RunningMicrobatch() = default;
  RunningMicrobatch(std::int64_t microbatches, at::Device device)
      : all_(at::arange(microbatches, at::TensorOptions().device(device).dtype(at::kLong))),
        running_(at::zeros({microbatches}, all_.options().dtype(at::kBool))) {}

  /// The work enqueued from now on belongs to `microbatch`.
  void begin(std::int64_t microbatch) const {
    const at::NoGradGuard no_grad;
    at::Tensor running = running_;
    at::eq_out(running, all_, microbatch);
  }

  /// rows [M, ...], row [...] of the same type. Copies `row` to the row of the running microbatch.
  /// One kernel, which selects element by element; index_copy_ takes twelve in PyTorch's
  /// deterministic mode, which sorts its index.
  void write(at::Tensor rows, const at::Tensor& row) const {
    const at::NoGradGuard no_grad;
    std::vector<std::int64_t> shape(static_cast<std::size_t>(rows.dim()), 1);
    shape[0] = -1;
    at::where_out(rows, running_.view(shape), row.unsqueeze(0), rows);
  }

 private:
  at::Tensor all_, running_;  // [M] int64: 0 .. M - 1; [M] bool: true for the running one
};

}  // namespace graphproof::workloads

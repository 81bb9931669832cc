// Which of a step's microbatches runs, in device memory, because a graph that is captured in one is
// replayed in others.
#pragma once

#include <cstdint>
#include <vector>

#include "fixtures/tensors/torch.h"

namespace graphproof::workloads {

class RunningMicrobatch {
 public:
  RunningMicrobatch() = default;
  RunningMicrobatch(std::int64_t microbatches, at::Device device)
      : all_(at::arange(microbatches, at::TensorOptions().device(device).dtype(at::kLong))),
        running_(at::zeros({microbatches}, all_.options().dtype(at::kBool))) {}

  /// Enqueues that what comes is of `microbatch`.
  void begin(std::int64_t microbatch) {
    const at::NoGradGuard no_grad;
    at::eq_out(running_, all_, microbatch);
  }

  /// rows [M, ...], row [...] of the same type. Enqueues the copy of `row` to the running
  /// microbatch's. Chosen element by element, in one kernel: index_copy_, for which deterministic
  /// PyTorch sorts its one index, takes twelve.
  void write(at::Tensor rows, const at::Tensor& row) const {
    const at::NoGradGuard no_grad;
    std::vector<std::int64_t> shape(static_cast<std::size_t>(rows.dim()), 1);
    shape[0] = -1;
    at::where_out(rows, running_.view(shape), row.unsqueeze(0), rows);
  }

 private:
  at::Tensor all_, running_;  // [M] int64, counted; [M] bool
};

}  // namespace graphproof::workloads

// The receive buffers of the flex dispatcher (moe.h): how many rows each has, and, in device
// memory, whether more arrived. All expert layers of a stage have buffers of one size, as with
// --moe-expert-rank-capacity-factor of Megatron-LM.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "fixtures/tensors/torch.h"
#include "workloads/config/model_config.h"

namespace graphproof::workloads {

/// Its tensors are static. arrived() and begin_step() enqueue on the current stream and may be
/// captured; a graph keeps the size that was set at its capture.
class ExpertBuffers {
 public:
  ExpertBuffers(const ModelConfig& config, const Layout& layout, at::Device device) {
    if (!config.flex) return;
    const std::int64_t rows =
        config.microbatch_size * layout.own_length(config) / layout.sequence_parts() * config.topk;
    even_rows_ = rows * layout.etp;
    most_rows_ = even_rows_ * layout.ep;
    overflowed_ = at::zeros({}, at::TensorOptions().dtype(at::kLong).device(device));
    needed_ = at::zeros_like(overflowed_);
  }

  /// The rows of a rank if all ranks receive equally many, and if one of them receives all.
  std::int64_t even_rows() const { return even_rows_; }
  std::int64_t most_rows() const { return most_rows_; }
  /// The rows of each buffer: most_rows() unless they are limited.
  std::int64_t rows() const { return limit_.value_or(most_rows_); }
  bool limited() const { return limit_.has_value(); }
  /// Limits the buffers of the passes that are enqueued from now on.
  void limit(std::int64_t rows) { limit_ = std::min(rows, most_rows_); }

  /// Forgets needed(), at the start of a step, and not overflowed().
  void begin_step() const {
    if (needed_.defined()) at::Tensor(needed_).zero_();
  }
  /// Notes how many rows [] int64 were sent to this rank in one dispatch.
  void arrived(const at::Tensor& sent) const {
    at::Tensor(needed_).copy_(at::maximum(needed_, sent));
    at::Tensor(overflowed_).add_(sent.gt(rows()));
  }
  /// [] int64: the dispatches since the host set it to zero in which rows were lost on this rank.
  /// A step does not clear it.
  const at::Tensor& overflowed() const { return overflowed_; }
  /// [] int64: the most rows that were sent to this rank in one dispatch of the latest step.
  const at::Tensor& needed() const { return needed_; }

 private:
  std::int64_t even_rows_ = 0, most_rows_ = 0;
  std::optional<std::int64_t> limit_;
  at::Tensor overflowed_, needed_;
};

}  // namespace graphproof::workloads

// A workload that consists of one collective: the smallest program in which NCCL, the allocator and
// a CUDA graph interact. The inputs change with every step. All values are small whole numbers, so
// every sum is exact in any order, and one rank alone can compute the result and compare it byte
// for byte.
//
// Both buffers are in one arena (placed_buffer.h), so that their placement is chosen and not left
// to chance:
//   symmetric   the buffers of every rank begin at the border between two pieces
//   per_rank    on odd ranks they straddle a border, on even ranks they are placed as above, so
//               the buffers of some ranks can be registered and those of others cannot
//
// Letters: N ranks of the group, B bytes of the largest buffer of a rank (axis collective_bytes),
// fp32 throughout.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fixtures/device/device.h"
#include "fixtures/tensors/named_tensor.h"
#include "workloads/parameters/placed_buffer.h"

namespace graphproof::workloads {

using fixtures::NamedTensor;

/// The values of axes collective, collective_bytes and placement. `group` has at least two ranks.
struct CollectiveConfig {
  std::string collective;  // all_gather, all_reduce, all_reduce_in_place, reduce_scatter, send_recv
  std::int64_t bytes = 0;  // B; a multiple of 4 N
  bool per_rank = false;
  std::string group;
};

/// One collective of one rank. Used by one thread.
class Collective {
 public:
  /// Places the buffers. REQUIRES: the stream that will run the collective is current. Throws
  /// std::invalid_argument for a collective that is not in the table and for a size that the ranks
  /// do not divide.
  Collective(CollectiveConfig config, capture::Device& device);

  /// Fills the input for `step`, on the current stream. Never inside a capture.
  void load(std::int64_t step);
  /// Enqueues the collective once on the current stream; may be captured. all_reduce_in_place
  /// copies its input first, so that a replay writes the whole result.
  void issue();
  /// The result that issue() must give after load(step), computed by this rank alone.
  at::Tensor expected(std::int64_t step) const;

  /// result: all_gather [B / 4], reduce_scatter [B / 4 / N], otherwise [B / 4] fp32.
  NamedTensor result() const { return {"result", out_}; }
  NamedTensor input() const { return {"input", in_}; }
  const std::vector<BufferPlace>& places() const { return places_; }

 private:
  at::Tensor values_of(int rank, std::int64_t step, std::int64_t elements) const;
  at::Tensor place(const BufferArena& arena, const char* buffer, std::int64_t bytes);

  CollectiveConfig config_;
  capture::Device& device_;
  int size_, index_;
  at::Tensor in_, out_;  // views of one arena
  std::vector<BufferPlace> places_;
};

}  // namespace graphproof::workloads

// A workload that consists of one collective: the smallest program in which NCCL, the allocator and
// a CUDA graph interact. The inputs change with every step. All values are small whole numbers, so
// every sum is exact in any order, and one rank alone can compute the result and compare it byte
// for byte.
//
// Buffers. A library can register a buffer only if one physical allocation of the driver backs all
// of it, and expandable segments consist of 20 MiB pieces (fixtures/device/device.h: PhysicalSpan).
// Both buffers are in one arena, so that their placement is chosen and not left to chance:
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

namespace graphproof::workloads {

using fixtures::NamedTensor;

/// The values of axes collective, collective_bytes and placement. `group` has at least two ranks.
struct CollectiveConfig {
  std::string collective;  // all_gather, all_reduce, all_reduce_in_place, reduce_scatter, send_recv
  std::int64_t bytes = 0;  // B; a multiple of 4 N
  bool per_rank = false;
  std::string group;
};

/// The placement of a buffer. On a device without spans (sim), `offset` counts from the start of
/// the arena and no buffer straddles.
struct BufferPlace {
  std::string buffer;
  std::int64_t bytes = 0;
  std::int64_t offset = 0;      // from the start of the physical span that holds its first byte
  std::int64_t span_bytes = 0;  // the size of that span; 0: unknown
  bool straddles = false;       // it ends in another span than it begins in
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
  at::Tensor place(const char* buffer, std::int64_t bytes, std::int64_t border, bool across);

  CollectiveConfig config_;
  capture::Device& device_;
  int size_, index_;
  at::Tensor arena_;  // fp32; in_ and out_ are views of it
  std::int64_t border_distance_ = 0, first_border_ = 0;
  at::Tensor in_, out_;
  std::vector<BufferPlace> places_;
};

}  // namespace graphproof::workloads

// One collective as a workload of its own: the smallest program in which the meeting of NCCL, the
// allocator and a CUDA graph can go wrong. Inputs change with every step; values are whole numbers
// so small that every sum is exact in whatever order, so the result can be computed on one rank
// alone and compared byte for byte.
//
// Buffers. A library may register a buffer only where one physical allocation of the driver backs
// all of it; expandable segments are made of 20 MiB pieces (fixtures/device/device.h:
// PhysicalSpan). Both buffers lie in one arena so that their place is chosen and not met by chance:
//   symmetric   every rank's buffers begin at the border between two pieces
//   per_rank    on odd ranks they lie across the middle of a border, on even ranks as above; so
//   some ranks' buffers can
//               be registered and others' can not
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

/// The axes collective, collective_bytes and placement. `group` has at least two ranks.
struct CollectiveConfig {
  std::string collective;  // all_gather, all_reduce, all_reduce_in_place, reduce_scatter, send_recv
  std::int64_t bytes = 0;  // B; a multiple of 4 N
  bool per_rank = false;
  std::string group;
};

/// Where a buffer lies. Without spans (sim) `offset` counts from the arena's begin and nothing
/// straddles.
struct BufferPlace {
  std::string buffer;
  std::int64_t bytes = 0;
  std::int64_t offset = 0;      // from the begin of the physical span that holds its first byte
  std::int64_t span_bytes = 0;  // of that span; 0: unknown
  bool straddles = false;       // it ends in another span than it begins in
};

class Collective {
 public:
  /// Places the buffers, with the stream current that will run the collective.
  /// std::invalid_argument for a collective that is not in the table or a size that does not
  /// divide.
  Collective(CollectiveConfig config, capture::Device& device);

  /// Fills the input for `step`, on the current stream. Never inside a capture.
  void load(std::int64_t step);
  /// The collective, once, on the current stream; may be captured. all_reduce_in_place copies its
  /// input first, so that a replay writes the whole result.
  void issue();
  /// What `issue` must leave in result() after load(step), computed by this rank alone.
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

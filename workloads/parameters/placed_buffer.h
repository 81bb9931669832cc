// Memory in which the place of a buffer is chosen and not left to chance, for buffers with which
// ranks communicate. A library can register a buffer only if one physical allocation of the driver
// backs all of it, and expandable segments consist of 20 MiB pieces (fixtures/device/device.h:
// PhysicalSpan). A buffer therefore lies at a border between two pieces, or across one. Where one
// allocation backs the whole arena, or the device has no physical allocations (sim), the two places
// differ in their offset alone.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <string>

#include "fixtures/device/device.h"

namespace graphproof::workloads {

/// The size of the pieces that PyTorch's allocator maps in an expandable segment
/// (c10/core/AllocatorConfig.h, large_segment_size).
inline constexpr std::int64_t kPieceBytes = std::int64_t{20} << 20;

/// The placement of a buffer. On a device without spans (sim), `offset` counts from the start of
/// the arena and no buffer straddles.
struct BufferPlace {
  std::string buffer;
  std::int64_t bytes = 0;
  std::int64_t offset = 0;      // from the start of the physical span that holds its first byte
  std::int64_t span_bytes = 0;  // the size of that span; 0: unknown
  bool straddles = false;       // it ends in another span than it begins in
};

/// Room for some buffers, zero at first. Used by one thread.
class BufferArena {
 public:
  /// Room for `buffers` buffers of up to `bytes` bytes each, of elements of `type`. `device`
  /// outlives it.
  BufferArena(capture::Device& device, at::ScalarType type, std::int64_t bytes,
              std::int64_t buffers);

  struct Placed {
    at::Tensor tensor;  // [elements], a view of the arena
    BufferPlace place;
  };
  /// Buffer `index`, from 0, with `elements` elements: `across` a border, or else from one on.
  Placed place(std::string name, std::int64_t index, std::int64_t elements, bool across) const;

 private:
  capture::Device& device_;
  at::Tensor arena_;
  std::int64_t border_distance_ = 0, first_border_ = 0;  // bytes
};

}  // namespace graphproof::workloads

#include "workloads/parameters/placed_buffer.h"

#include <utility>

#include "fixtures/tensors/torch.h"

namespace graphproof::workloads {
namespace {

/// The alignment of buffers in bytes, that of the allocator's own blocks.
constexpr std::int64_t kAligned = 512;

std::int64_t rounded_up(std::int64_t bytes, std::int64_t to) { return (bytes + to - 1) / to * to; }

/// The distance of the arena's borders in bytes: that of the allocator's pieces, or a multiple of
/// it for larger buffers; the room for one buffer on a device without pieces.
std::int64_t border_distance(const capture::Device& device, std::int64_t bytes) {
  const at::Tensor sample = at::empty({1}, at::TensorOptions().device(device.torch_device()));
  return device.physical_span(device.address(sample)).bytes > 0 ? rounded_up(bytes, kPieceBytes)
                                                                : rounded_up(bytes, kAligned);
}

}  // namespace

BufferArena::BufferArena(capture::Device& device, at::ScalarType type, std::int64_t bytes,
                         std::int64_t buffers)
    : device_(device), border_distance_(border_distance(device, bytes)) {
  // Two distances for each buffer, because one that lies across a border ends in the second of
  // them, and one more, because the first border may lie up to a piece behind the beginning.
  arena_ = at::zeros(
      {(2 * buffers + 1) * border_distance_ / static_cast<std::int64_t>(c10::elementSize(type))},
      at::TensorOptions().device(device_.torch_device()).dtype(type));
  const std::uint64_t begin = device_.address(arena_);
  if (const capture::PhysicalSpan span = device_.physical_span(begin); span.bytes > 0) {
    const auto to_border =
        static_cast<std::int64_t>(span.begin + static_cast<std::uint64_t>(span.bytes) - begin);
    // If one allocation backs the whole arena there is no border, and only offsets can differ.
    if (to_border <= kPieceBytes) first_border_ = to_border;
  }
}

BufferArena::Placed BufferArena::place(std::string name, std::int64_t index, std::int64_t elements,
                                       bool across) const {
  const auto element = static_cast<std::int64_t>(arena_.element_size());
  const std::int64_t bytes = elements * element,
                     offset = first_border_ + 2 * index * border_distance_ +
                              (across ? border_distance_ - rounded_up(bytes / 2, kAligned) : 0);
  Placed placed{.tensor = arena_.narrow(0, offset / element, elements),
                .place = {.buffer = std::move(name), .bytes = bytes, .offset = offset}};
  const std::uint64_t address = device_.address(placed.tensor);
  if (const capture::PhysicalSpan span = device_.physical_span(address); span.bytes > 0) {
    placed.place.offset = static_cast<std::int64_t>(address - span.begin);
    placed.place.span_bytes = span.bytes;
    placed.place.straddles = placed.place.offset + bytes > span.bytes;
  }
  return placed;
}

}  // namespace graphproof::workloads

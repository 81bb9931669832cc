#include "workloads/training/collective.h"

#include <array>
#include <stdexcept>

#include "fixtures/comm/collectives.h"
#include "fixtures/comm/collectives_into.h"
#include "fixtures/tensors/torch.h"

namespace graphproof::workloads {
namespace {

constexpr std::int64_t kElementBytes = sizeof(float);
// The size of the pieces that PyTorch's allocator maps in an expandable segment
// (c10/core/AllocatorConfig.h, large_segment_size).
constexpr std::int64_t kPiece = std::int64_t{20} << 20;
// The input is at the first border and the result two borders further, with one spare piece at each
// end.
constexpr std::int64_t kPieces = 5;
// Sums of up to 2^16 ranks stay below 2^24, where fp32 is exact.
constexpr std::int64_t kValues = 251;

void run_all_gather(at::Tensor& out, const at::Tensor& in, const std::string& group) {
  comm::all_gather_into(out, in, group);
}
void run_all_reduce(at::Tensor& out, const at::Tensor& in, const std::string& group) {
  comm::all_reduce_into(out, in, group);
}
void run_reduce_scatter(at::Tensor& out, const at::Tensor& in, const std::string& group) {
  comm::reduce_scatter_into(out, in, group);
}
void run_send_recv(at::Tensor& out, const at::Tensor& in, const std::string& group) {
  comm::ring_exchange_into(out, in, group);
}
void run_all_reduce_in_place(at::Tensor& out, const at::Tensor& in, const std::string& group) {
  out.copy_(in);
  comm::all_reduce_(out, group);
}

enum class Result { sum, own_part_of_sum, everybodys, of_the_one_before };

struct Kind {
  std::string_view name;
  bool in_is_part, out_is_part;  // the buffer has B / N bytes; otherwise it has B
  Result result;
  void (*run)(at::Tensor& out, const at::Tensor& in, const std::string& group);
};
constexpr std::array kKinds = {
    Kind{"all_gather", true, false, Result::everybodys, run_all_gather},
    Kind{"all_reduce", false, false, Result::sum, run_all_reduce},
    Kind{"all_reduce_in_place", false, false, Result::sum, run_all_reduce_in_place},
    Kind{"reduce_scatter", false, true, Result::own_part_of_sum, run_reduce_scatter},
    Kind{"send_recv", false, false, Result::of_the_one_before, run_send_recv},
};

/// The alignment of buffers in bytes, that of the allocator's own blocks.
constexpr std::int64_t kAligned = 512;

std::int64_t aligned(std::int64_t bytes) { return (bytes + kAligned - 1) / kAligned * kAligned; }

/// The distance of the arena's borders in bytes: that of the allocator's pieces, or the room for
/// one buffer on a device without pieces.
std::int64_t border_distance(const capture::Device& device, std::int64_t bytes) {
  const at::Tensor sample = at::empty({1}, at::TensorOptions().device(device.torch_device()));
  return device.physical_span(device.address(sample)).bytes > 0 ? kPiece : aligned(bytes);
}

const Kind& kind_of(const std::string& collective) {
  for (const Kind& kind : kKinds)
    if (kind.name == collective) return kind;
  std::string names;
  for (const Kind& kind : kKinds) names += (names.empty() ? "" : ", ") + std::string(kind.name);
  throw std::invalid_argument("collective `" + collective + "`; want one of " + names);
}

}  // namespace

Collective::Collective(CollectiveConfig config, capture::Device& device)
    : config_(std::move(config)),
      device_(device),
      size_(comm::group_size(config_.group)),
      index_(comm::group_index(config_.group)) {
  const Kind& kind = kind_of(config_.collective);
  const std::int64_t whole = config_.bytes, part = whole / size_;
  if (size_ < 2 || whole <= 0 || whole % (kElementBytes * size_) != 0 || whole > kPiece)
    throw std::invalid_argument(
        "collective of " + std::to_string(whole) + " bytes over " + std::to_string(size_) +
        " ranks; want at least two ranks and a multiple of " +
        std::to_string(kElementBytes * size_) + " bytes up to " + std::to_string(kPiece) +
        ", since a larger buffer straddles on every rank");
  border_distance_ = border_distance(device_, whole);
  arena_ = at::empty({kPieces * border_distance_ / kElementBytes},
                     at::TensorOptions().device(device_.torch_device()));
  const std::uint64_t begin = device_.address(arena_);
  if (const capture::PhysicalSpan span = device_.physical_span(begin); span.bytes > 0) {
    const auto to_border =
        static_cast<std::int64_t>(span.begin + static_cast<std::uint64_t>(span.bytes) - begin);
    // If one allocation backs the whole arena there is no border, and only offsets can differ.
    if (to_border <= kPiece) first_border_ = to_border;
  }
  const bool across = config_.per_rank && index_ % 2 == 1;
  in_ = place("input", kind.in_is_part ? part : whole, 0, across);
  out_ = place("result", kind.out_is_part ? part : whole, 2, across);
}

at::Tensor Collective::place(const char* buffer, std::int64_t bytes, std::int64_t border,
                             bool across) {
  const std::int64_t offset = first_border_ + border * border_distance_ +
                              (across ? border_distance_ - aligned(bytes / 2) : 0);
  const at::Tensor tensor = arena_.narrow(0, offset / kElementBytes, bytes / kElementBytes);
  BufferPlace placed{.buffer = buffer, .bytes = bytes, .offset = offset};
  const std::uint64_t address = device_.address(tensor);
  if (const capture::PhysicalSpan span = device_.physical_span(address); span.bytes > 0) {
    placed.offset = static_cast<std::int64_t>(address - span.begin);
    placed.span_bytes = span.bytes;
    placed.straddles = placed.offset + bytes > span.bytes;
  }
  places_.push_back(placed);
  return tensor;
}

at::Tensor Collective::values_of(int rank, std::int64_t step, std::int64_t elements) const {
  const at::Tensor counts =
      at::arange(elements, at::TensorOptions().device(device_.torch_device()).dtype(at::kLong));
  return (counts * 7 + (131 * rank + 17 * step)).remainder(kValues).to(at::kFloat);
}

void Collective::load(std::int64_t step) { in_.copy_(values_of(index_, step, in_.numel())); }

void Collective::issue() { kind_of(config_.collective).run(out_, in_, config_.group); }

at::Tensor Collective::expected(std::int64_t step) const {
  const auto values = [&](int rank) { return values_of(rank, step, in_.numel()); };
  const auto sum = [&] {
    at::Tensor total = values(0);
    for (int rank = 1; rank < size_; ++rank) total += values(rank);
    return total;
  };
  switch (kind_of(config_.collective).result) {
    case Result::sum:
      return sum();
    case Result::own_part_of_sum:
      return sum().narrow(0, index_ * out_.numel(), out_.numel()).contiguous();
    case Result::of_the_one_before:
      return values((index_ + size_ - 1) % size_);
    case Result::everybodys:
      break;
  }
  std::vector<at::Tensor> parts;
  for (int rank = 0; rank < size_; ++rank) parts.push_back(values(rank));
  return at::cat(parts);
}

}  // namespace graphproof::workloads

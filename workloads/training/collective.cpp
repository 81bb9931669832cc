#include "workloads/training/collective.h"

#include <array>
#include <stdexcept>

#include "fixtures/comm/collectives.h"
#include "fixtures/comm/collectives_into.h"
#include "fixtures/tensors/torch.h"

namespace graphproof::workloads {
namespace {

constexpr std::int64_t kElementBytes = sizeof(float);
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
  if (size_ < 2 || whole <= 0 || whole % (kElementBytes * size_) != 0 || whole > kPieceBytes)
    throw std::invalid_argument(
        "collective of " + std::to_string(whole) + " bytes over " + std::to_string(size_) +
        " ranks; want at least two ranks and a multiple of " +
        std::to_string(kElementBytes * size_) + " bytes up to " + std::to_string(kPieceBytes) +
        ", since a larger buffer straddles on every rank");
  const BufferArena arena(device_, at::kFloat, whole, /*buffers=*/2);
  in_ = place(arena, "input", kind.in_is_part ? part : whole);
  out_ = place(arena, "result", kind.out_is_part ? part : whole);
}

at::Tensor Collective::place(const BufferArena& arena, const char* buffer, std::int64_t bytes) {
  const bool across = config_.per_rank && index_ % 2 == 1;
  BufferArena::Placed placed =
      arena.place(buffer, std::ssize(places_), bytes / kElementBytes, across);
  places_.push_back(std::move(placed.place));
  return placed.tensor;
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

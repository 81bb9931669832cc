#include "workloads/layers/flex_placement.h"

namespace graphproof::workloads {
namespace {

/// The sums along `dimension` of the elements before each one.
at::Tensor sums_before(const at::Tensor& counts, std::int64_t dimension) {
  return counts.cumsum(dimension) - counts;
}

/// For each number the index of the part in which it lies: the count of `ends` that are not above
/// it. ends [..., n]; numbers [m] or [..., m] to [..., m].
at::Tensor part_of(const at::Tensor& numbers, const at::Tensor& ends) {
  return numbers.unsqueeze(-1).ge(ends.unsqueeze(-2)).sum({-1});
}

}  // namespace

FlexPlacement::FlexPlacement(const at::Tensor& counts, const at::Tensor& numbers,
                             const Sizes& sizes) {
  const at::NoGradGuard no_grad;
  const std::int64_t senders = counts.size(0), receivers = counts.size(1), experts = counts.size(2);
  const std::int64_t rows = sizes.rows, capacity = sizes.capacity;
  const at::Tensor in_slot = numbers.narrow(0, 0, rows);

  // As a sender.
  const at::Tensor own = counts.select(0, sizes.sender);           // [P, M]
  const at::Tensor to = own.sum({1}), first = sums_before(to, 0);  // [P]
  const at::Tensor slot_row = first.unsqueeze(1) + in_slot;        // [P, R]
  slot_rows_ = slot_row.clamp_max(rows - 1).view({-1});
  beyond_slot_ = in_slot.ge(to.unsqueeze(1)).view({-1, 1});
  const at::Tensor receiver = part_of(in_slot, first + to).clamp_max(receivers - 1);  // [R]
  places_in_slots_ =
      (receiver * rows + in_slot - first.gather(0, receiver)).clamp(0, receivers * rows - 1);

  // As a receiver. `by_sender` [S, M]: the rows in each sender's slot.
  const at::Tensor by_sender = counts.select(1, sizes.receiver);
  const at::Tensor expert = part_of(in_slot, by_sender.cumsum(1));  // [S, R]; M beyond the rows
  never_sent_ = expert.ge(experts);                                 // [S, R]
  const at::Tensor starts = sums_before(by_sender.t().reshape({-1}), 0)
                                .view({experts, senders})
                                .t();  // [S, M]: where an expert's rows of a sender begin
  const at::Tensor shift =
      (starts - sums_before(by_sender, 1)).gather(1, expert.clamp_max(experts - 1));
  const at::Tensor places =
      (shift + in_slot).masked_fill(never_sent_, senders * rows).view({1, -1});  // [1, S*R]
  arrived_rows_ = std::get<1>(at::sort(places, /*stable=*/true, 1, /*descending=*/false))
                      .view({-1})
                      .narrow(0, 0, capacity);
  places_ = places.clamp_max(capacity - 1).view({-1});
  lost_ = places.ge(capacity).view({-1, 1});
  never_sent_ = never_sent_.view({-1, 1});
  const at::Tensor of_expert = by_sender.sum({0});  // [M]
  const at::Tensor row = numbers.narrow(0, 0, capacity);
  const at::Tensor expert_of_row = part_of(row, of_expert.cumsum(0));  // [C]; M beyond the rows
  beyond_rows_ = expert_of_row.ge(experts).unsqueeze(1);
  other_experts_ = expert_of_row.unsqueeze(0)
                       .ne(numbers.narrow(0, 0, experts).unsqueeze(1))
                       .unsqueeze(2);  // [M, C, 1]
  needed_ = of_expert.sum();

  // Where this sender's rows begin at each receiver, [P, M].
  const at::Tensor begins = sums_before(counts.permute({1, 2, 0}).reshape({receivers, -1}), 1)
                                .view({receivers, experts, senders})
                                .select(2, sizes.sender);
  carried_ = at::minimum(own, (capacity - begins).clamp_min(0)).reshape({-1});
}

at::Tensor FlexPlacement::slots(const at::Tensor& rows, double undefined) const {
  return at::index(rows, {slot_rows_}).masked_fill(beyond_slot_, undefined);
}

at::Tensor FlexPlacement::received(const at::Tensor& arrived, double undefined) const {
  return at::index(arrived, {arrived_rows_}).masked_fill(beyond_rows_, undefined);
}

at::Tensor FlexPlacement::of_experts(const at::Tensor& buffer) const {
  return buffer.unsqueeze(0).masked_fill(other_experts_, 0);
}

at::Tensor FlexPlacement::of_rows(const at::Tensor& results) const {
  return results.masked_fill(other_experts_, 0).sum({0});
}

at::Tensor FlexPlacement::returned(const at::Tensor& results, double undefined) const {
  return at::index(results, {places_}).masked_fill(lost_, 0).masked_fill(never_sent_, undefined);
}

at::Tensor FlexPlacement::rows(const at::Tensor& slots) const {
  return at::index(slots, {places_in_slots_});
}

}  // namespace graphproof::workloads

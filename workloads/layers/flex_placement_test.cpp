#include "workloads/layers/flex_placement.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "workloads/parameters/draw.h"

namespace graphproof::workloads::flex_placement_test {
namespace {

constexpr double kUndefined = std::numeric_limits<double>::quiet_NaN();
constexpr std::int64_t kHidden = 3;

/// A dispatch between `parts` * `ranks` senders and `ranks` receivers with `experts` each, played
/// on the host. Row r of sender s holds the number 1 + s * R + r.
struct Dispatch {
  Dispatch(std::int64_t parts, std::int64_t ranks, std::int64_t experts, std::int64_t rows,
           std::uint64_t seed)
      : senders(parts * ranks),
        receivers(ranks),
        experts_of_one(experts),
        rows_of_one(rows),
        counts(at::zeros({senders, ranks, experts}, at::kLong)),
        numbers(at::arange(senders * rows, at::kLong)) {
    auto at_counts = counts.accessor<std::int64_t, 3>();
    const Draw draw(seed, "rows");
    // Squares, so that some experts have many rows and some have none.
    for (std::int64_t s = 0; s < senders; ++s)
      for (std::int64_t r = 0; r < rows; ++r) {
        const double x = (draw.uniform(s * rows + r) + 1) / 2;
        const auto expert = std::min(static_cast<std::int64_t>(x * x * double(ranks * experts)),
                                     ranks * experts - 1);
        ++at_counts[s][expert / experts][expert % experts];
      }
  }

  /// A sender has another place as a receiver in every part.
  FlexPlacement placement(std::int64_t sender, std::int64_t receiver, std::int64_t capacity) const {
    return FlexPlacement(
        counts, numbers,
        {.rows = rows_of_one, .capacity = capacity, .sender = sender, .receiver = receiver});
  }
  at::Tensor rows(std::int64_t sender) const {
    return (at::arange(rows_of_one, at::kFloat) + double(1 + sender * rows_of_one))
        .unsqueeze(1)
        .expand({-1, kHidden})
        .contiguous();
  }
  /// What the receivers get: [S * R, H] for each.
  std::vector<at::Tensor> exchanged(std::int64_t capacity) const {
    std::vector<at::Tensor> sent, arrived;
    for (std::int64_t s = 0; s < senders; ++s)
      sent.push_back(placement(s, s % receivers, capacity)
                         .slots(rows(s), kUndefined)
                         .view({receivers, rows_of_one, kHidden}));
    for (std::int64_t p = 0; p < receivers; ++p) {
      std::vector<at::Tensor> slots;
      for (const at::Tensor& of_sender : sent) slots.push_back(of_sender.select(0, p));
      arrived.push_back(at::cat(slots));
    }
    return arrived;
  }

  std::int64_t senders, receivers, experts_of_one, rows_of_one;
  at::Tensor counts, numbers;
};

std::int64_t total(const at::Tensor& numbers) { return numbers.sum().item<std::int64_t>(); }

struct Row {
  std::int64_t parts, ranks, experts, rows;
};
const std::vector<Row> kRows{
    {1, 1, 4, 9}, {1, 2, 2, 12}, {1, 4, 1, 7}, {2, 2, 3, 10}, {2, 1, 2, 5}};

/// Sends rows to experts that multiply by 1, 2, 3 ..., and back. Returns the rows [S][R, H] that
/// the senders get.
std::vector<at::Tensor> through_experts(const Dispatch& all, std::int64_t capacity) {
  const auto arrived = all.exchanged(capacity);
  std::vector<at::Tensor> back(static_cast<std::size_t>(all.receivers));
  for (std::int64_t p = 0; p < all.receivers; ++p) {
    const FlexPlacement placement = all.placement(p, p, capacity);
    const at::Tensor inputs =
        placement.of_experts(placement.received(arrived[static_cast<std::size_t>(p)], kUndefined));
    EXPECT_EQ(inputs.sizes(), (std::vector<std::int64_t>{all.experts_of_one, capacity, kHidden}));
    EXPECT_FALSE(inputs.isnan().any().item<bool>()) << "an undefined row reached an expert";
    const at::Tensor factors =
        at::arange(all.experts_of_one, at::kFloat) + double(1 + p * all.experts_of_one);
    back[static_cast<std::size_t>(p)] =
        placement.returned(placement.of_rows(inputs * factors.view({-1, 1, 1})), kUndefined)
            .view({all.senders, all.rows_of_one, kHidden});
  }
  std::vector<at::Tensor> got;
  for (std::int64_t s = 0; s < all.senders; ++s) {
    std::vector<at::Tensor> slots;
    for (const at::Tensor& of_receiver : back) slots.push_back(of_receiver.select(0, s));
    got.push_back(all.placement(s, s % all.receivers, capacity).rows(at::cat(slots)));
  }
  return got;
}

TEST(FlexPlacement, EveryRowReachesItsExpertAndReturnsToItsPlace) {
  for (const Row& row : kRows)
    for (std::uint64_t seed = 0; seed < 8; ++seed) {
      const Dispatch all(row.parts, row.ranks, row.experts, row.rows, seed);
      const auto got = through_experts(all, all.senders * row.rows);
      for (std::int64_t s = 0; s < all.senders; ++s) {
        const at::Tensor expert = at::repeat_interleave(all.counts.select(0, s).reshape({-1}));
        const at::Tensor want = all.rows(s) * (expert + 1).unsqueeze(1);
        EXPECT_TRUE(at::equal(got[static_cast<std::size_t>(s)], want))
            << "sender " << s << " of " << all.senders << ", seed " << seed;
      }
    }
}

// A buffer that is too small loses the last rows, whose results are zero. Senders and receivers
// count alike.
TEST(FlexPlacement, RowsWithoutAPlaceAreLostAndCounted) {
  std::int64_t lost_in_all = 0;
  for (const Row& row : kRows)
    for (std::uint64_t seed = 0; seed < 8; ++seed) {
      const Dispatch all(row.parts, row.ranks, row.experts, row.rows, seed);
      const std::int64_t capacity = row.parts * row.rows;  // an even share
      const auto got = through_experts(all, capacity);
      std::int64_t carried = 0, kept = 0, zeros = 0;
      for (std::int64_t s = 0; s < all.senders; ++s) {
        const at::Tensor of_sender = all.placement(s, s % row.ranks, capacity).carried();
        EXPECT_TRUE(of_sender.le(all.counts.select(0, s).reshape({-1})).all().item<bool>());
        carried += total(of_sender);
        zeros += total(got[static_cast<std::size_t>(s)].select(1, 0).eq(0));
      }
      for (std::int64_t p = 0; p < all.receivers; ++p) {
        const std::int64_t needed = total(all.placement(p, p, capacity).needed());
        EXPECT_EQ(needed, total(all.counts.select(1, p)));
        kept += std::min(needed, capacity);
      }
      EXPECT_EQ(carried, kept);
      EXPECT_EQ(zeros, all.senders * row.rows - kept);
      lost_in_all += zeros;
    }
  EXPECT_GT(lost_in_all, 0) << "every row had a place";
}

// Undefined rows have no part in a gradient, and every other row has its own.
TEST(FlexPlacement, GradientsAreThoseOfTheRowsAlone) {
  const Dispatch all(1, 1, 4, 9, 3);
  const FlexPlacement placement = all.placement(0, 0, 9);
  const at::Tensor rows = all.rows(0).requires_grad_(true);
  const at::Tensor inputs =
      placement.of_experts(placement.received(placement.slots(rows, kUndefined), kUndefined));
  const at::Tensor factors = at::arange(4, at::kFloat) + 1.0;
  const at::Tensor back = placement.rows(
      placement.returned(placement.of_rows(inputs * factors.view({-1, 1, 1})), kUndefined));
  torch::autograd::backward({back.sum()});
  const at::Tensor expert = at::repeat_interleave(all.counts.reshape({-1}));
  EXPECT_TRUE(
      at::equal(rows.grad(), (expert + 1).to(at::kFloat).unsqueeze(1).expand({-1, kHidden})));
}

// Of two senders, one has no rows for the first receiver and another none for the second.
TEST(FlexPlacement, BuffersAreUndefinedBeyondTheRowsThatArrived) {
  Dispatch all(1, 2, 2, 4, 0);
  all.counts.copy_(at::tensor({0, 0, 1, 3, 2, 2, 0, 0}, at::kLong).view({2, 2, 2}));
  const auto arrived = all.exchanged(8);
  for (std::int64_t p = 0; p < 2; ++p) {
    const at::Tensor buffer =
        all.placement(p, p, 8).received(arrived[static_cast<std::size_t>(p)], kUndefined);
    EXPECT_FALSE(buffer.narrow(0, 0, 4).isnan().any().item<bool>()) << p;
    EXPECT_TRUE(buffer.narrow(0, 4, 4).isnan().all().item<bool>()) << p;
  }
}

}  // namespace
}  // namespace graphproof::workloads::flex_placement_test

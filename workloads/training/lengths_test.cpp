#include "workloads/training/lengths.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <list>
#include <map>
#include <string>

#include "workloads/faults/plant.h"
#include "workloads/testing/step_under_test.h"

namespace graphproof::workloads {
namespace {

using fixtures::Fault;

const std::shared_ptr<faults::FaultHooks> sound = faults::plant(Fault::none);

const ModelConfig kUneven{.hidden = 32, .ffn = 64, .vocab = 64, .microbatches = 3};

TEST(Lengths, HaveOneBucketMoreThanTheCacheHoldsAndStepsBeyondTheLargest) {
  const LengthSchedule two = length_schedule(16, 2, 1);
  EXPECT_EQ(two.buckets, (std::vector<std::int64_t>{4, 8, 12}));
  EXPECT_EQ(std::count(two.steps.begin(), two.steps.end(), std::nullopt), 2);
  EXPECT_EQ(length_schedule(16, 1, 0).buckets, (std::vector<std::int64_t>{5, 10}));
}

TEST(Lengths, MakeACacheOfAnyBoundEvictWhatFirstInFirstOutWouldKeepAndTakeItBack) {
  for (std::int64_t bound = 1; bound <= 4; ++bound)
    for (std::int64_t warmup = 0; warmup <= 3; ++warmup) {
      const LengthSchedule schedule = length_schedule(64, bound, warmup);
      std::list<std::int64_t> resident;  // the latest used first
      std::map<std::int64_t, std::int64_t> eager;
      std::vector<std::int64_t> evicted, captured;
      bool replayed_behind_an_eviction = false;
      for (const auto& step : schedule.steps) {
        if (!step) continue;
        const auto found = std::find(resident.begin(), resident.end(), *step);
        if (found != resident.end()) {
          resident.splice(resident.begin(), resident, found);
          replayed_behind_an_eviction |= !evicted.empty();
        } else if (eager[*step] < warmup) {
          ++eager[*step];
        } else {
          if (static_cast<std::int64_t>(resident.size()) == bound) {
            evicted.push_back(resident.back());
            resident.pop_back();
          }
          resident.push_front(*step);
          captured.push_back(*step);
        }
      }
      const std::string where =
          "bound " + std::to_string(bound) + ", warm-up " + std::to_string(warmup);
      ASSERT_FALSE(evicted.empty()) << where;
      EXPECT_TRUE(bound == 1 || evicted.front() != schedule.buckets.front())
          << where << ": the first in is the latest used";
      EXPECT_GE(std::count(captured.begin(), captured.end(), evicted.front()), 2) << where;
      EXPECT_TRUE(replayed_behind_an_eviction) << where;
    }
}

TEST(Lengths, AreThoseOfTheStepOnEveryRankAndNoMicrobatchIsLonger) {
  const LengthSchedule schedule = length_schedule(kUneven.seq_length, 2, 1);
  for (std::int64_t step = 0; step < static_cast<std::int64_t>(schedule.steps.size()); ++step) {
    const std::int64_t longest = longest_of(kUneven, schedule, step);
    const auto bucket = schedule.steps[static_cast<std::size_t>(step)];
    const auto holds = std::lower_bound(schedule.buckets.begin(), schedule.buckets.end(), longest);
    EXPECT_EQ(holds == schedule.buckets.end() ? std::nullopt : std::optional(*holds), bucket)
        << "step " << step;
    for (int rank = 0; rank < 2; ++rank) {
      const Batch batch =
          make_uneven_batch(kUneven, {.dp = 2, .dp_rank = rank}, schedule, 1, step, at::kCPU);
      for (std::size_t m = 0; m < batch.tokens.size(); ++m) {
        EXPECT_LE(batch.tokens[m].size(1), longest);
        EXPECT_GE(batch.tokens[m].size(1), 2);
        EXPECT_NEAR(batch.weights[m].sum().item<float>(), 1, 1e-6);
      }
      EXPECT_TRUE(rank > 0 || batch.tokens[0].size(1) == longest);
    }
  }
}

TEST(Lengths, AreWhatTheRanksCanSplitAndEveryRankHasAShorterMicrobatch) {
  const Layout layout{.tp = 2, .sequence_parallel = true, .cp = 2};
  EXPECT_EQ(length_unit(layout), 8);
  EXPECT_EQ(length_unit({.tp = 2}), 1);
  const ModelConfig config{.vocab = 64, .seq_length = 64, .microbatches = 2};
  const LengthSchedule schedule = length_schedule(config.seq_length, 1, 0, length_unit(layout));
  EXPECT_EQ(schedule.buckets, (std::vector<std::int64_t>{16, 40}));
  for (std::int64_t step = 0; step < static_cast<std::int64_t>(schedule.steps.size()); ++step) {
    const std::int64_t longest = longest_of(config, schedule, step);
    EXPECT_EQ(longest % 8, 0);
    for (int rank = 0; rank < 2; ++rank) {
      const Batch batch =
          make_uneven_batch(config, {.dp = 2, .dp_rank = rank}, schedule, 1, step, at::kCPU);
      for (const at::Tensor& tokens : batch.tokens) EXPECT_EQ(tokens.size(1) % 8, 0);
      EXPECT_TRUE(longest == 8 || batch.tokens[1].size(1) < longest) << "step " << step;
    }
  }
}

TEST(Lengths, ARankRunsItsPartOfAPaddedSequence) {
  const LengthSchedule schedule = length_schedule(kUneven.seq_length, 1, 0, 4);
  const Batch whole =
      padded(make_uneven_batch(kUneven, {}, schedule, 1, 0, at::kCPU), 12, 9, *sound);
  const Batch first = own_part(whole, {.cp = 2, .cp_rank = 0}),
              second = own_part(whole, {.cp = 2, .cp_rank = 1});
  const auto part = [&](std::int64_t chunk) { return whole.tokens[0].narrow(1, 3 * chunk, 3); };
  EXPECT_TRUE(at::equal(first.tokens[0], at::cat({part(0), part(3)}, 1)));
  EXPECT_TRUE(at::equal(second.tokens[0], at::cat({part(1), part(2)}, 1)));
  EXPECT_NEAR((first.weights[0].sum() + second.weights[0].sum()).item<float>(), 2, 1e-6);
}

TEST(Lengths, PaddingWeighsNothingAndALongerMicrobatchIsCut) {
  const LengthSchedule schedule = length_schedule(kUneven.seq_length, 2, 1);
  const Batch batch = make_uneven_batch(kUneven, {}, schedule, 1, 2, at::kCPU);
  const std::int64_t length = batch.tokens[0].size(1);
  const Batch longer = padded(batch, length + 3, 9, *sound),
              shorter = padded(batch, length - 1, 9, *sound);
  EXPECT_TRUE(at::equal(longer.tokens[0].narrow(1, 0, length), batch.tokens[0]));
  EXPECT_TRUE(longer.tokens[0].narrow(1, length, 3).eq(9).all().item<bool>());
  EXPECT_EQ(longer.weights[0].narrow(1, length, 3).abs().max().item<float>(), 0);
  EXPECT_TRUE(at::equal(shorter.tokens[0], batch.tokens[0].narrow(1, 0, length - 1)));
}

TEST(Lengths, TooShortSequencesAreRefused) {
  try {
    length_schedule(7, 2, 1);
    FAIL() << "accepted";
  } catch (const std::invalid_argument& error) {
    EXPECT_STREQ(error.what(),
                 "shape buckets: got seq_length = 7 for 3 buckets; want at least 8; why: each "
                 "needs a length of its own; "
                 "next: change seq_length or shape_buckets");
  }
}

/// The gradients and losses after a step.
std::vector<std::vector<float>> left_by(TrainStep& step, const Batch& batch) {
  step.forward_backward(batch);
  std::vector<std::vector<float>> left{on_host(step.losses())};
  for (const NamedTensor& gradient : step.gradients()) left.push_back(on_host(gradient.tensor));
  return left;
}

TEST(Lengths, TheTokensOfThePaddingChangeNoBit) {
  StepUnderTest under_test(kUneven);
  const LengthSchedule schedule = length_schedule(kUneven.seq_length, 2, 1);
  const Batch batch =
      make_uneven_batch(kUneven, {}, schedule, 1, 2, under_test.device.torch_device());
  EXPECT_EQ(left_by(under_test.step, padded(batch, 8, 0, *sound)),
            left_by(under_test.step, padded(batch, 8, 63, *sound)));
}

TEST(Lengths, APaddedStepIsTheStepWithoutPaddingUpToReorderedSums) {
  StepUnderTest under_test(kUneven);
  const LengthSchedule schedule = length_schedule(kUneven.seq_length, 2, 1);
  const Batch batch =
      make_uneven_batch(kUneven, {}, schedule, 1, 3, under_test.device.torch_device());
  const auto bare = left_by(under_test.step, batch),
             filled = left_by(under_test.step, padded(batch, 8, 5, *sound)),
             counted = left_by(under_test.step,
                               padded(batch, 8, 5, *faults::plant(Fault::padding_counts_in_loss)));
  // 4 sqrt(n) 2^-24 of the largest element for sums of n = 96 products, 66 in a chain
  // (suites/case/reference.cpp derives it).
  const double bound = 4 * std::sqrt(96.0) * std::pow(2.0, -24) * 66;
  double off = 0;
  for (std::size_t i = 0; i < bare.size(); ++i) {
    double largest = 0;
    for (const float value : bare[i]) largest = std::max<double>(largest, std::abs(value));
    for (std::size_t k = 0; k < bare[i].size(); ++k) {
      EXPECT_NEAR(filled[i][k], bare[i][k], bound * largest) << "tensor " << i << " element " << k;
      off = std::max(off, std::abs(counted[i][k] - bare[i][k]) / (bound * largest));
    }
  }
  EXPECT_GT(off, 10) << "M144 would hide in the bound";
}

}  // namespace
}  // namespace graphproof::workloads

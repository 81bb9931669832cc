#include "workloads/requests/batch_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <stdexcept>

namespace graphproof::requests {
namespace {

Settings settings(std::int64_t slots, std::int64_t chunk, std::int64_t ranks = 1) {
  return {.slots = slots,
          .length = 16,
          .steps = 256,
          .chunk = chunk,
          .blocks = 0,
          .ranks = ranks,
          .sizes = powers_of_two(slots)};
}

TEST(BatchPlan, SizesArePowersOfTwoAndTheLargestBatch) {
  EXPECT_EQ(powers_of_two(1), (std::vector<std::int64_t>{1}));
  EXPECT_EQ(powers_of_two(4), (std::vector<std::int64_t>{1, 2, 4}));
  EXPECT_EQ(powers_of_two(6), (std::vector<std::int64_t>{1, 2, 4, 6}));
}

TEST(BatchPlan, ABatchIsPaddedToTheSmallestSizeThatHoldsIt) {
  const std::vector<std::int64_t> sizes{1, 4, 6};
  EXPECT_EQ(padded_size(sizes, 0), 1);
  EXPECT_EQ(padded_size(sizes, 2), 4);
  EXPECT_EQ(padded_size(sizes, 6), 6);
  EXPECT_EQ(padded_size(sizes, 7), std::nullopt);
}

TEST(BatchPlan, EveryTokenOfARequestIsComputedOnceInItsOrder) {
  for (const std::int64_t chunk : {0, 1, 3, 4})
    for (const std::int64_t ranks : {1, 2}) {
      const Settings of = settings(4, chunk, ranks);
      const auto steps = plan(of);
      for (std::int64_t rank = 0; rank < ranks; ++rank) {
        std::map<std::int64_t, std::int64_t> computed, sampled;  // by request
        for (const Step& step : steps[static_cast<std::size_t>(rank)]) {
          for (const Row& row : step.rows) EXPECT_EQ(row.position, computed[row.request]++);
          for (auto row = step.rows.end() - step.sampled; row != step.rows.end(); ++row)
            ++sampled[row->request];
        }
        EXPECT_GT(computed.size(), 5u);
        const std::int64_t newest = computed.rbegin()->first;
        for (const auto& [index, tokens] : computed) {
          if (index + of.slots >= newest) continue;  // it may not have ended
          EXPECT_EQ(tokens, request(of, rank, index).kept());
          EXPECT_EQ(sampled[index], request(of, rank, index).output);
        }
      }
    }
}

TEST(BatchPlan, ARequestHasEndedIfItHasAllItsTokens) {
  const Settings of = settings(1, 0);  // one request after another
  const std::vector<Step> all = plan(of)[0];
  const Request first = request(of, 0, 0);
  std::vector<Step> steps;
  for (std::int64_t tokens = 0; tokens < first.output; steps.push_back(all[steps.size()])) {
    EXPECT_EQ(ended(of, 0, steps).requests, 0);
    const Step& next = all[steps.size()];
    for (auto row = next.rows.end() - next.sampled; row != next.rows.end(); ++row)
      tokens += row->request == 0 ? 1 : 0;
  }
  EXPECT_EQ(ended(of, 0, steps).requests, 1);
  EXPECT_EQ(ended(of, 0, steps).tokens, first.output);
}

TEST(BatchPlan, NoTwoRequestsShareASlotOrABlock) {
  const auto steps = plan(settings(4, 0));
  for (const Step& step : steps[0]) {
    std::multiset<std::int64_t> blocks;
    for (const auto& table : step.tables)
      for (const std::int64_t block : table)
        if (block != kNoBlock) blocks.insert(block);
    EXPECT_EQ(blocks.size(), std::set(blocks.begin(), blocks.end()).size());
    for (const Row& row : step.rows)
      EXPECT_NE(step.tables[static_cast<std::size_t>(row.slot)]
                           [static_cast<std::size_t>(row.position / kBlockTokens)],
                kNoBlock);
  }
}

TEST(BatchPlan, BatchesTakeEveryNumberOfRowsAndPause) {
  std::set<std::int64_t> rows;
  bool prefills = false, single_token_prompt = false;
  const auto steps = plan(settings(4, 0));
  for (const Step& step : steps[0]) {
    if (step.work == Work::decode) rows.insert(std::ssize(step.rows));
    if (step.work == Work::idle) rows.insert(0);
    prefills |= step.work == Work::prefill;
    single_token_prompt |= step.work == Work::prefill && step.rows.size() == 1;
  }
  EXPECT_EQ(rows, (std::set<std::int64_t>{0, 1, 2, 3, 4}));
  EXPECT_TRUE(prefills && single_token_prompt);
}

TEST(BatchPlan, RanksDoTheSameWorkInTheSameSizeAndSomeOnlyWithPadding) {
  const auto steps = plan(settings(4, 4, 2));
  bool padding_alone = false;
  for (std::size_t step = 0; step < steps[0].size(); ++step) {
    EXPECT_EQ(steps[0][step].work, steps[1][step].work);
    EXPECT_EQ(steps[0][step].size, steps[1][step].size);
    padding_alone |= steps[0][step].work != Work::idle &&
                     (steps[0][step].rows.empty() || steps[1][step].rows.empty());
  }
  EXPECT_TRUE(padding_alone);
}

TEST(BatchPlan, RequestsOfEveryRankEndInAJobOfFourTimesTheirLengthAndInARollout) {
  for (const std::int64_t slots : {2, 4, 6})
    for (const std::int64_t chunk : {0, 3})
      for (const std::int64_t length : {4, 16}) {
        Settings many = settings(slots, chunk, 8);
        many.length = length;
        for (const std::int64_t job : {4 * length, rollout_steps(length)}) {
          many.steps = job;
          const auto steps = plan(many);
          for (std::int64_t rank = 0; rank < many.ranks; ++rank)
            EXPECT_GT(ended(many, rank, steps[static_cast<std::size_t>(rank)]).requests, 0)
                << "rank " << rank << ", " << job << " steps, length " << length;
        }
      }
}

TEST(BatchPlan, BatchesBeyondTheLargestSizeRunWithoutAGraph) {
  Settings small = settings(4, 0);
  small.sizes = {1, 2};
  bool beyond = false;
  const auto steps = plan(small);
  for (const Step& step : steps[0]) {
    if (step.work != Work::decode) continue;
    EXPECT_EQ(step.graph, step.rows.size() <= 2);
    beyond |= step.rows.size() > 2;
  }
  EXPECT_TRUE(beyond);
}

TEST(BatchPlan, RequestsWaitForBlocksAndACacheThatIsTooSmallIsRefused) {
  Settings few = settings(4, 0);
  few.blocks = few.blocks_of_request();
  std::size_t most = 0;
  const auto steps = plan(few);
  for (const Step& step : steps[0])
    if (step.work == Work::decode) most = std::max(most, step.rows.size());
  EXPECT_LT(most, 4u);
  EXPECT_GT(most, 0u);
  few.blocks -= 1;
  try {
    plan(few);
    FAIL();
  } catch (const std::invalid_argument& error) {
    EXPECT_STREQ(error.what(),
                 "a key-value cache of 3 blocks of 4 tokens; want at least 4 for a request of 16 "
                 "tokens, which would otherwise wait for ever");
  }
}

}  // namespace
}  // namespace graphproof::requests

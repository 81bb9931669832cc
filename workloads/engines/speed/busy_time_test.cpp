#include "workloads/engines/speed/busy_time.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <bitset>

namespace graphproof::speed {
namespace {

using fixtures::ActivityKind;

TEST(BusyTime, TheUnionCountsWhatOverlapsOnce) {
  struct Row {
    const char* name;
    std::vector<Interval> intervals;
    std::int64_t want_ns;
  };
  const Row rows[] = {
      {"nothing", {}, 0},
      {"one", {{5, 9}}, 4},
      {"apart", {{5, 9}, {20, 21}}, 5},
      {"touching", {{5, 9}, {9, 12}}, 7},
      {"overlapping, in another order", {{8, 12}, {5, 9}}, 7},
      {"one inside another, and one after both", {{0, 100}, {10, 20}, {90, 110}}, 110},
      {"the same interval again", {{3, 4}, {3, 4}}, 1},
      {"empty ones", {{7, 7}, {1, 2}, {2, 2}}, 1},
      {"before the clock's zero", {{-10, -5}, {-7, 1}}, 11},
  };
  for (const Row& row : rows) EXPECT_EQ(union_ns(row.intervals), row.want_ns) << row.name;
}

TEST(BusyTime, TheUnionIsTheNumberOfNanosecondsThatAnIntervalHolds) {
  EXPECT_TRUE(rc::check([] {
    std::bitset<64> held;
    std::vector<Interval> intervals;
    for (const int begin : *rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 48))) {
      const int end = begin + *rc::gen::inRange(0, 16);
      intervals.push_back({begin, end});
      for (int ns = begin; ns < end; ++ns) held.set(static_cast<std::size_t>(ns));
    }
    RC_ASSERT(union_ns(intervals) == static_cast<std::int64_t>(held.count()));
  }));
}

TEST(BusyTime, NcclsKernelsAreReportedApart) {
  const BusyTime busy = busy_time(
      {{ActivityKind::kernel, "void at::native::vectorized_elementwise_kernel<4>", 0, 2'000'000},
       {ActivityKind::copy, "Memcpy DtoD (Device -> Device)", 1'000'000, 3'000'000},
       {ActivityKind::fill, "Memset (Device)", 5'000'000, 5'500'000},
       {ActivityKind::kernel,
        "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)", 2'000'000,
        6'000'000}});
  EXPECT_DOUBLE_EQ(busy.compute_ms, 3.5);
  EXPECT_DOUBLE_EQ(busy.collectives_ms, 4.0);
  EXPECT_EQ(busy.kernels, 2);
}

}  // namespace
}  // namespace graphproof::speed

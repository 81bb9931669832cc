#include "launcher/cpus.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <numeric>
#include <set>

namespace graphproof::launcher {
namespace {

using Near = std::vector<std::optional<Cpus>>;

// Two sockets of four cores with two threads each, numbered as Linux does.
const std::vector<Cpus> kCores = {{0, 8}, {1, 9}, {2, 10}, {3, 11}, {4, 12}, {5, 13}, {6, 14}, {7, 15}};
const Cpus kFirstSocket = {0, 1, 2, 3, 8, 9, 10, 11}, kSecondSocket = {4, 5, 6, 7, 12, 13, 14, 15};

TEST(CpusTest, SlotsShareTheCoresNearTheirGpusAndNoCore) {
  EXPECT_EQ(divide(kCores, Near{kFirstSocket, kSecondSocket, kFirstSocket}),
            (std::vector<Cpus>{{0, 1, 8, 9}, kSecondSocket, {2, 3, 10, 11}}));
}

TEST(CpusTest, WhereNobodyTellsWhatIsNearAllCoresAreShared) {
  EXPECT_EQ(divide(kCores, Near{kFirstSocket, std::nullopt}), (std::vector<Cpus>{kFirstSocket, kSecondSocket}));
}

TEST(CpusTest, WithoutACoreForEachSlotNobodyIsPinned) {
  EXPECT_EQ(divide({{0}, {1}}, Near(3)), std::vector<Cpus>(3));
  EXPECT_EQ(divide(kCores, Near{Cpus{64}, kFirstSocket}), std::vector<Cpus>(2)) << "what is near may not be ours to use";
}

TEST(CpusTest, ThisHostsCoresAreThoseThatThisProcessMayUse) {
  std::set<int> cpus;
  for (const Cpus& core : cores())
    for (const int cpu : core) EXPECT_TRUE(cpus.insert(cpu).second) << cpu;
  EXPECT_FALSE(cpus.empty());
}

TEST(CpusTest, ListsAreDisjointAndEveryoneHasOneOrNobodyDoes) {
  EXPECT_TRUE(rc::check([] {
    const auto core_count = *rc::gen::inRange(1, 40);
    std::vector<Cpus> cores;
    for (int core = 0; core < core_count; ++core) cores.push_back({core, core + core_count});
    Near near;
    for (int slot = *rc::gen::inRange(1, 17); slot > 0; --slot) {
      const int first = *rc::gen::inRange(0, core_count), count = *rc::gen::inRange(0, core_count);
      Cpus cpus(static_cast<std::size_t>(count));
      std::iota(cpus.begin(), cpus.end(), first);
      near.push_back(count == 0 ? std::nullopt : std::optional(cpus));
    }
    const std::vector<Cpus> divided = divide(cores, near);
    RC_ASSERT(divided.size() == near.size());
    std::set<int> taken;
    std::size_t pinned = 0;
    for (const Cpus& own : divided) {
      pinned += !own.empty();
      for (const int cpu : own) RC_ASSERT(taken.insert(cpu).second);
    }
    RC_ASSERT(pinned == 0 || pinned == divided.size());
  }));
}

}  // namespace
}  // namespace graphproof::launcher

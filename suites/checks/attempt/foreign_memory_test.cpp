#include "suites/checks/attempt/foreign_memory.h"

#include <gtest/gtest.h>

#include <vector>

namespace graphproof::checks {
namespace {

constexpr std::int64_t kMebibyte = 1 << 20;

/// What a rank wrote of its memory, in MiB: beside its allocator, and in it.
struct Look {
  std::string arm, when;
  std::int64_t step, beside, reserved = 0;
};

std::string seen_in(const std::vector<Look>& looks, std::int64_t shared_gpus = 0) {
  RankFiles files;
  files.rank = 3;
  record::Evidence& evidence = files.evidence.emplace();
  const auto add = [&](const auto& line) {
    evidence.lines.push_back({.kind = std::string(line.kKind),
                              .fields = record::line_json(line),
                              .line = evidence.lines.size() + 1});
  };
  record::StartLine start{.device = "cuda"};
  if (shared_gpus > 0) start.shared_gpus = shared_gpus;
  add(start);
  for (const Look& look : looks)
    add(record::MemoryLine{.arm = look.arm,
                           .step = look.step,
                           .when = look.when,
                           .reserved = look.reserved * kMebibyte,
                           .device = (look.beside + look.reserved) * kMebibyte});
  record::type_lines(evidence);
  Attempt attempt;
  attempt.ranks.push_back(std::move(files));
  return foreign_memory(attempt);
}

TEST(ForeignMemory, IsSeenWhenMoreIsFreedBesideTheAllocatorThanAProcessFrees) {
  const std::string seen =
      seen_in({{"solo_eager", "step", 4, 1065}, {"solo_eager", "step", 5, 1000}});
  EXPECT_NE(seen.find("other processes used the GPU of rank 3: 65 MiB"), std::string::npos) << seen;
  EXPECT_NE(seen.find("at step 5 of arm solo_eager"), std::string::npos) << seen;
  EXPECT_NE(seen_in({{"solo_graph", "step", 4, 1065}, {"solo_graph", "step", 5, 1000}}), "");
  EXPECT_NE(seen_in({{"solo_eager", "before", 0, 5000}, {"solo_eager", "built", 0, 1000}}), "");
}

TEST(ForeignMemory, IsNotSeenInWhatAProcessDoesByItself) {
  EXPECT_EQ(seen_in({{"solo_eager", "step", 4, 1064}, {"solo_eager", "step", 5, 1000}}), "");
  EXPECT_EQ(seen_in({{"solo_eager", "step", 4, 1000, 100}, {"solo_eager", "step", 5, 1000}}), "")
      << "what the allocator returned";
  EXPECT_EQ(seen_in({{"solo_graph", "dropped", 0, 1100}, {"solo_graph", "returned", 0, 1000}}), "")
      << "what destroyed graphs returned";
  EXPECT_EQ(seen_in({{"solo_eager", "returned", 0, 1100}, {"solo_graph", "step", 0, 1000}}), "")
      << "what went between two arms";
  EXPECT_EQ(seen_in({{"solo_eager", "step", 4, 1000}, {"solo_eager", "step", 5, 9000}}), "")
      << "a rise, which is judged";
}

TEST(ForeignMemory, IsThatOfOtherRanksWhereTheyShareGpus) {
  EXPECT_EQ(seen_in({}), "");
  EXPECT_NE(seen_in({}, 1).find("ranks of this case shared GPUs"), std::string::npos);
}

}  // namespace
}  // namespace graphproof::checks

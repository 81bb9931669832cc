#include <gtest/gtest.h>

#include "suites/checks/testing/check_rows.h"
#include "suites/checks/testing/memory_lines.h"

namespace graphproof::checks {
namespace {

using nlohmann::json;

const json kMemoryLimited = {{"impl", "full_iteration"},
                             {"tp", 2},
                             {"microbatches", 2},
                             {"memory_limit", "graph_peak <= 2.0 * eager_peak"}};

/// Adds `bytes` to a field of every step of solo_graph on rank 1, as memory that a capture took.
std::function<void(Attempt&)> graph_holds(const char* field, std::int64_t bytes) {
  return [=](Attempt& attempt) {
    for (Line& line : attempt.ranks[1].evidence->lines)
      if (line.kind == "memory" && text(line, "arm") == "solo_graph" &&
          text(line, "when") == "step")
        line.fields[field] = line.fields.at(field).get<std::int64_t>() + bytes;
    type_again(attempt);
  };
}

// Both arms of the clean attempt reserve 6 MiB.
TEST(StatedMemory, Rows) {
  judge_rows("D31.stated_memory", kMemoryLimited,
             {
                 {.name = "the graphs hold 7 MiB more (M327)",
                  .change = graph_holds("reserved", 7 << 20),
                  .rank = 1,
                  .mentions = {"the memory exceeds the limit `graph_peak <= 2.0 * eager_peak`",
                               "1.08333333 of the limit: eager_peak 6 MiB, graph_peak 13 MiB"}},
                 {.name = "the last steps are absent",
                  .change =
                      [](Attempt& a) {
                        std::erase_if(a.ranks[1].evidence->lines, [](const Line& line) {
                          return line.kind == "memory" && text(line, "arm") == "solo_eager" &&
                                 text(line, "when") == "step";
                        });
                        a.ranks[1].evidence->lines.back().fields["lines"] =
                            a.ranks[1].evidence->lines.size() - 1;
                        type_again(a);
                      },
                  .rank = 1,
                  .mentions = {"`memory` line of arm solo_eager after its last step"},
                  .also = {"*"}},
                 rank_died({.rank = 1, .kind = "memory", .arm = "solo_graph"}),
             });
}

TEST(StatedMemory, TheFactorMayGrowWithTheCase) {
  json axes = kMemoryLimited;
  axes["memory_limit"] = "graph_peak <= (1 + 0.6 * microbatches) * eager_peak";
  EXPECT_EQ(judge_one("D31.stated_memory", axes, graph_holds("reserved", 7 << 20)).result,
            record::Result::pass);
  EXPECT_EQ(judge_one("D31.stated_memory", axes, graph_holds("reserved", 8 << 20)).result,
            record::Result::fail);
}

// The free arm's graphs live on while solo_graph runs, and own a pool that it cannot use.
TEST(StatedMemory, PoolsOfOtherArmsAreNotCounted) {
  const auto kept_pool = [](std::int64_t graph_bytes) {
    return [graph_bytes](Attempt& attempt) {
      constexpr std::int64_t kPool = 64 << 20;
      for (Line& line : attempt.ranks[1].evidence->lines)
        if (line.kind == "memory" && text(line, "arm") == "solo_graph")
          for (const char* field : {"reserved", "pool"})
            line.fields[field] = line.fields.at(field).get<std::int64_t>() + kPool;
      graph_holds("reserved", graph_bytes)(attempt);
    };
  };
  EXPECT_EQ(judge_one("D31.stated_memory", kMemoryLimited, kept_pool(0)).result,
            record::Result::pass);
  EXPECT_EQ(judge_one("D31.stated_memory", kMemoryLimited, kept_pool(7 << 20)).result,
            record::Result::fail);
}

TEST(StatedMemory, OfTheDeviceNeedsAGpuOfItsOwn) {
  json axes = kMemoryLimited;
  axes["memory_limit"] = "graph_device <= eager_device + 1 * MiB and graph_peak <= 3 * eager_peak";
  EXPECT_EQ(judge_one("D31.stated_memory", axes, graph_holds("device", 1 << 20)).result,
            record::Result::pass);
  EXPECT_EQ(judge_one("D31.stated_memory", axes, graph_holds("device", 2 << 20)).result,
            record::Result::fail);
  EXPECT_EQ(judge_one("D31.stated_memory", axes,
                      [](Attempt& attempt) {
                        graph_holds("device", 2 << 20)(attempt);
                        share_gpus(attempt);
                      })
                .result,
            record::Result::unexercised);
}

TEST(StatedMemory, IsNotApplicableWithoutALimit) {
  EXPECT_EQ(judge_one("D31.stated_memory", kTwoRanks, graph_holds("reserved", 1 << 30)).result,
            record::Result::not_applicable);
}

}  // namespace
}  // namespace graphproof::checks

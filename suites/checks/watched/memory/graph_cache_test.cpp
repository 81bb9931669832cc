#include <gtest/gtest.h>

#include "suites/checks/watched/testing/watched_rows.h"

namespace graphproof::checks::watched {
namespace {

/// Sixteen graphs more, made late and launched once each.
void leak(WatchedJob& job) {
  for (std::int64_t graph = 9; graph <= 24; ++graph) {
    auto made = lines<record::ExecutableGraphLine>(job, 1)[7];
    made.executable = graph;
    made.seconds = 8.0 + 0.1 * static_cast<double>(graph);
    lines<record::ExecutableGraphLine>(job, 1).push_back(made);
    auto replays = lines<record::ReplaysLine>(job, 1)[7];
    replays.executable = graph;
    replays.first_s = replays.last_s = made.seconds;
    lines<record::ReplaysLine>(job, 1).push_back(replays);
    auto blocks = lines<record::OperandBlocksLine>(job, 1)[7];
    blocks.executable = graph;
    lines<record::OperandBlocksLine>(job, 1).push_back(blocks);
  }
  for (std::size_t i : {0u, 1u}) lines<record::ReplaysLine>(job, 1)[i].launches = 10;
  line_of(job, 1).executables = line_of(job, 1).executables_live_most = 24;
}

TEST(WatchedGraphCache, Rows) {
  judge_watched_rows(
      "D34.graph_cache",
      {{.name = "graphs are made until the end",
        .change =
            [](WatchedJob& job) {
              leak(job);
              for (std::size_t i : {0u, 1u}) lines<record::ReplaysLine>(job, 0)[i].launches = 10;
            },
        .rank = 1,
        .mentions = {"16 graphs in the second half", "24 alive at once"},
        .also = {"D31.allocator_series", "D31.device_trend", "D31.open_files",
                 "D31.resident_trend"}},
       {.name = "when they were made is not known",
        .change =
            [](WatchedJob& job) { lines<record::ExecutableGraphLine>(job, 1)[0].seconds.reset(); },
        .want = record::Result::unexercised,
        .rank = std::nullopt,
        .mentions = {"not known"}}});
}

TEST(WatchedGraphCache, GraphsThatAreEvictedAreNoLeak) {
  WatchedJob job = clean_job();
  leak(job);
  line_of(job, 1).executables_live_most = 8;
  EXPECT_EQ(result_of("D34.graph_cache", job).result, record::Result::pass);
}

}  // namespace
}  // namespace graphproof::checks::watched

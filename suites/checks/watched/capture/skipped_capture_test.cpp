#include <gtest/gtest.h>

#include "suites/checks/watched/testing/watched_rows.h"

namespace graphproof::checks::watched {
namespace {

TEST(WatchedSkippedCapture, Rows) {
  judge_watched_rows("D63.skipped_capture",
                     {{.name = "a counter of Inductor",
                       .change =
                           [](WatchedJob& job) {
                             lines<record::GraphCountersLine>(job, 1).push_back(
                                 {.counters = {{"inductor.cudagraph_skips", 2}}});
                           },
                       .rank = 1,
                       .mentions = {"2 skips"}},
                      {.name = "a message",
                       .change =
                           [](WatchedJob& job) {
                             lines<record::GraphMessageLine>(job, 0).push_back(
                                 {.about = "skipped",
                                  .source = "torch._inductor",
                                  .text = "skipping cudagraphs due to mutated inputs"});
                           },
                       .rank = 0,
                       .mentions = {"due to mutated inputs"}}});
}

TEST(WatchedSkippedCapture, AProgramWithoutAnyGraphFailsToo) {
  WatchedJob job = clean_job();
  for (std::size_t rank : {0u, 1u}) {
    const record::WatchedProcessLine line = line_of(job, rank);
    process_of(job, rank).evidence = {};
    lines<record::WatchedProcessLine>(job, rank) = {line};
    line_of(job, rank).captures = line_of(job, rank).executables = 0;
  }
  EXPECT_EQ(result_of("D63.skipped_capture", job).result, record::Result::unexercised);
  lines<record::GraphCountersLine>(job, 1).push_back(
      {.counters = {{"inductor.cudagraph_skips", 1}}});
  EXPECT_EQ(result_of("D63.skipped_capture", job).result, record::Result::fail);
}

}  // namespace
}  // namespace graphproof::checks::watched

#include <gtest/gtest.h>

#include "suites/checks/watched/testing/watched_rows.h"

namespace graphproof::checks::watched {
namespace {

TEST(WatchedForeignThreads, Rows) {
  judge_watched_rows(
      "D61.foreign_threads",
      {{.name = "a refused call",
        .change =
            [](WatchedJob& job) {
              lines<record::ForeignCallLine>(job, 1).push_back({.capture = 2,
                                                                .function = "cuMemHostAlloc",
                                                                .thread = 4713,
                                                                .thread_name = "pt_pinned",
                                                                .result = 900,
                                                                .count = 1});
            },
        .rank = 1,
        .mentions = {"cuMemHostAlloc", "thread 4713 (pt_pinned)", "900", "thread_local"}},
       {.name = "work of another thread",
        .change =
            [](WatchedJob& job) {
              lines<record::WatchedCaptureLine>(job, 0)[0].work_by_thread["4799"] = 2;
            },
        .rank = 0,
        .mentions = {"2 calls of thread 4799", "capture 1"}},
       {.name = "another thread ends it",
        .change =
            [](WatchedJob& job) { lines<record::WatchedCaptureLine>(job, 1)[0].end_thread = 4712; },
        .rank = 1,
        .mentions = {"ended by another thread"}},
       {.name = "more failed calls than are kept",
        .change =
            [](WatchedJob& job) {
              lines<record::WatchedCaptureLine>(job, 1)[0].failed_calls_left_out = 5;
            },
        .want = record::Result::unexercised,
        .rank = std::nullopt,
        .mentions = {"5 failed calls during capture 1 were not kept"}}});
}

}  // namespace
}  // namespace graphproof::checks::watched

#include <gtest/gtest.h>

#include "suites/checks/watched/testing/watched_rows.h"

namespace graphproof::checks::watched {
namespace {

/// Looks at graph 1 of rank 1, at each of which `unread` of two copies were read by nothing.
std::function<void(WatchedJob&)> looks(int count, std::int64_t unread, bool unclear = false) {
  return [=](WatchedJob& job) {
    auto& lines_of_rank = lines<record::HostCopiesLine>(job, 1);
    lines_of_rank.clear();
    for (int look = 0; look < count; ++look)
      lines_of_rank.push_back({.executable = 1,
                               .launches = 3 + 6 * look,
                               .copies = 2,
                               .unread = unread,
                               .unread_bytes = 4096 * unread,
                               .unclear = unclear,
                               .why = unclear ? "kernel gemm: it may hold a tensor map" : ""});
  };
}

TEST(WatchedCopiesRead, Rows) {
  judge_watched_rows(
      "D69.copies_read",
      {{.name = "batches that no graph reads",
        .change = looks(3, 2),
        .rank = 1,
        .mentions = {"before replays of graph 1, captured at /data/train.py:41 step",
                     "6 copies, 24576 bytes, before 3 of 3 replays", "static_input.copy_"}},
       {.name = "too few looks",
        .change = looks(2, 2),
        .want = record::Result::unexercised,
        .rank = std::nullopt,
        .mentions = {"nothing read what was copied before 2 replays of graph 1"}},
       {.name = "something may have read them unseen",
        .change =
            [](WatchedJob& job) {
              looks(4, 2, true)(job);
              lines<record::HostCopiesLine>(job, 0).clear();
            },
        .want = record::Result::unexercised,
        .rank = std::nullopt,
        .mentions = {"no copy from the host could be followed: before launch 3 of graph 1",
                     "kernel gemm: it may hold a tensor map"}}});
}

TEST(WatchedCopiesRead, APartOfABatchThatIsNotUsedIsSound) {
  WatchedJob job = clean_job();
  looks(3, 1)(job);
  EXPECT_EQ(result_of("D69.copies_read", job).result, record::Result::pass);
}

TEST(WatchedCopiesRead, ABatchThatIsReadNowAndThenIsSound) {
  WatchedJob job = clean_job();
  looks(3, 2)(job);
  lines<record::HostCopiesLine>(job, 1).push_back(
      {.executable = 1, .launches = 33, .copies = 2, .unread = 0});
  EXPECT_EQ(result_of("D69.copies_read", job).result, record::Result::pass);
}

}  // namespace
}  // namespace graphproof::checks::watched

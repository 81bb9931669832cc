#include <gtest/gtest.h>

#include "suites/checks/watched/testing/watched_rows.h"

namespace graphproof::checks::watched {
namespace {

TEST(WatchedOneLibnccl, Rows) {
  judge_watched_rows(
      "D28.one_libnccl",
      {{.name = "two of them",
        .change =
            [](WatchedJob& job) {
              line_of(job, 1).libraries.push_back(
                  {.name = "libnccl", .path = "/usr/lib/libnccl.so.2", .version = 23007});
            },
        .rank = 1,
        .mentions = {"/opt/nccl/libnccl.so.2 and /usr/lib/libnccl.so.2"}},
       {.name = "none",
        .change =
            [](WatchedJob& job) {
              for (std::size_t rank : {0u, 1u}) line_of(job, rank).libraries.clear();
            },
        .want = record::Result::unexercised,
        .rank = std::nullopt,
        .mentions = {"libnccl is not loaded"}}});
}

}  // namespace
}  // namespace graphproof::checks::watched

#include <gtest/gtest.h>

#include "suites/checks/watched/testing/watched_rows.h"

namespace graphproof::checks::watched {
namespace {

TEST(WatchedGraphMemory, Rows) {
  judge_watched_rows("D65.graph_memory",
                     {{.name = "later graphs take more",
                       .change =
                           [](WatchedJob& job) {
                             for (std::size_t i = 4; i < 8; ++i)
                               lines<record::ExecutableGraphLine>(job, 1)[i].bytes =
                                   std::int64_t{300} << 20;
                           },
                       .rank = 1,
                       .mentions = {"the 4 later graphs", "1200 MiB", "about 8 MiB"}},
                      {.name = "few graphs",
                       .change =
                           [](WatchedJob& job) {
                             for (std::size_t rank : {0u, 1u})
                               lines<record::ExecutableGraphLine>(job, rank).resize(4);
                           },
                       .want = record::Result::unexercised,
                       .rank = std::nullopt,
                       .mentions = {"no more than 4 graphs"},
                       .also = {"*"}}});
}

}  // namespace
}  // namespace graphproof::checks::watched

#include <gtest/gtest.h>

#include "suites/checks/watched/testing/watched_rows.h"

namespace graphproof::checks::watched {
namespace {

TEST(WatchedCapturedCopies, Rows) {
  judge_watched_rows("D64.captured_copies",
                     {{.name = "copies of the whole state",
                       .change =
                           [](WatchedJob& job) {
                             lines<record::WatchedGraphLine>(job, 1)[0].copied_bytes = 352 << 20;
                           },
                       .rank = 1,
                       .mentions = {"graph 1", "369098752 bytes a step"}},
                      {.name = "no optimizer",
                       .change =
                           [](WatchedJob& job) {
                             for (std::size_t rank : {0u, 1u})
                               lines<record::WatchedCaptureLine>(job, rank)[0].optimizer_steps = 0;
                           },
                       .want = record::Result::unexercised,
                       .rank = std::nullopt,
                       .mentions = {"no graph that was launched has an optimizer"},
                       .also = {"D69.frozen_numbers"}},
                      {.name = "no snapshot",
                       .change =
                           [](WatchedJob& job) {
                             for (std::size_t rank : {0u, 1u})
                               lines<record::MemoryPoolsLine>(job, rank).clear();
                           },
                       .want = record::Result::unexercised,
                       .rank = std::nullopt,
                       .mentions = {"not looked up"}}});
}

}  // namespace
}  // namespace graphproof::checks::watched

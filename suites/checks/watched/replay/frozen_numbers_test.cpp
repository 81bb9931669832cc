#include <gtest/gtest.h>

#include "suites/checks/watched/testing/watched_rows.h"

namespace graphproof::checks::watched {
namespace {

TEST(WatchedFrozenNumbers, Rows) {
  judge_watched_rows(
      "D69.frozen_numbers",
      {{.name = "a learning rate that a schedule lowers",
        .change =
            [](WatchedJob& job) {
              lines<record::FrozenNumberLine>(job, 1).push_back({.capture = 1,
                                                                 .optimizer = "SGD",
                                                                 .name = "lr",
                                                                 .captured = "0.1",
                                                                 .now = "0.05",
                                                                 .replays = 30});
            },
        .rank = 1,
        .mentions = {"graph 1, captured at /data/train.py:41 step, keeps the `lr`",
                     "0.1 in the kernels of SGD, group 0, at replay 31", "0.05, as the host"}},
       {.name = "evidence of an older probe",
        .change =
            [](WatchedJob& job) {
              lines<record::WatchedCaptureLine>(job, 1)[0].optimizer_numbers.reset();
            },
        .want = record::Result::unexercised,
        .rank = std::nullopt,
        .mentions = {"were not looked at by the probe"}},
       {.name = "no optimizer's step in a graph",
        .change =
            [](WatchedJob& job) {
              for (std::size_t rank : {0u, 1u})
                lines<record::WatchedCaptureLine>(job, rank)[0].optimizer_steps = 0;
            },
        .want = record::Result::unexercised,
        .rank = std::nullopt,
        .mentions = {"no graph that was launched has an optimizer's step"},
        .also = {"D64.captured_copies"}}});
}

}  // namespace
}  // namespace graphproof::checks::watched

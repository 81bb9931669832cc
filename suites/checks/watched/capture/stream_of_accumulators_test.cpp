#include <gtest/gtest.h>

#include "suites/checks/watched/testing/watched_rows.h"

namespace graphproof::checks::watched {
namespace {

TEST(WatchedStreamOfAccumulators, Rows) {
  judge_watched_rows(
      "D68.stream_of_accumulators",
      {{.name = "PyTorch warned",
        .change =
            [](WatchedJob& job) {
              lines<record::GraphMessageLine>(job, 1).push_back(
                  {.about = "accumulator",
                   .source = "warning UserWarning",
                   .text = "The AccumulateGrad node's stream does not match. And more"});
              lines<record::WatchedCaptureLine>(job, 1).front().result = 901;
            },
        .rank = 1,
        .mentions = {"does not match.", "torch.cuda.stream(side)"},
        .also = {"D19.capture_status", "D24.rank_signatures"}},
       {.name = "PyTorch warned, and the captures ended well",
        .change =
            [](WatchedJob& job) {
              lines<record::GraphMessageLine>(job, 1).push_back(
                  {.about = "accumulator",
                   .source = "warning UserWarning",
                   .text = "The AccumulateGrad node's stream does not match. And more"});
            },
        .want = record::Result::pass}});
}

}  // namespace
}  // namespace graphproof::checks::watched

#include <gtest/gtest.h>

#include "suites/checks/watched/testing/watched_rows.h"

namespace graphproof::checks::watched {
namespace {

TEST(WatchedBadStack, Rows) {
  judge_watched_rows("D67.bad_stack",
                     {{.name = "NCCL across machines",
                       .change =
                           [](WatchedJob& job) {
                             line_of(job, 1).libraries[0].version = 22809;
                             lines<record::CommunicatorLine>(job, 1)[0].nodes = 2;
                           },
                       .rank = 1,
                       .mentions = {"libnccl 2.28.9", "2.30.4", "vllm-project/vllm/issues/52504"},
                       .also = {"D28.effective_config"}},
                      {.name = "NCCL across machines, on all ranks",
                       .change =
                           [](WatchedJob& job) {
                             for (std::size_t rank : {0u, 1u}) {
                               line_of(job, rank).libraries[0].version = 22809;
                               lines<record::CommunicatorLine>(job, rank)[0].nodes = 2;
                             }
                           },
                       .rank = 0,
                       .mentions = {"libnccl 2.28.9"}},
                      {.name = "grouped products",
                       .change =
                           [](WatchedJob& job) {
                             line_of(job, 1).libraries[1].version = 130100;
                             lines<record::WatchedGraphLine>(job, 1)[1].kernels.push_back(
                                 {.name = "nvjet_Grouped_64x8", .count = 1});
                           },
                       .rank = 1,
                       .mentions = {"libcublasLt 13.1.0", "TransformerEngine/pull/3171"},
                       .also = {"D28.effective_config"}}});
}

}  // namespace
}  // namespace graphproof::checks::watched

#include <gtest/gtest.h>

#include "suites/checks/watched/testing/watched_rows.h"

namespace graphproof::checks::watched {
namespace {

TEST(WatchedExecUpdate, Rows) {
  judge_watched_rows(
      "D62.exec_update",
      {{.name = "launched after a refusal",
        .change =
            [](WatchedJob& job) {
              auto& update = lines<record::GraphUpdateLine>(job, 1)[0];
              update.result = 910;
              update.result_name = "CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE";
              update.update_result = 2;
            },
        .rank = 1,
        .mentions = {"graph 2", "UPDATE_FAILURE", "reason 2"}},
       {.name = "launched in clusters of the kernels before",
        .change =
            [](WatchedJob& job) {
              auto& update = lines<record::GraphUpdateLine>(job, 1)[0];
              update.clusters = 3;
              update.kept_clusters = 2;
              update.kept_kernel = "nvjet_1x1";
            },
        .rank = 1,
        .mentions = {"graph 2", "2 in clusters", "nvjet_1x1", "cluster of 1 x 1 x 1"}},
       {.name = "an update of kernels in clusters that was not read",
        .change =
            [](WatchedJob& job) {
              auto& update = lines<record::GraphUpdateLine>(job, 1)[0];
              update.clusters = 3;
              update.operands_read = false;
            },
        .want = record::Result::unexercised,
        .rank = std::nullopt,
        .mentions = {"graph 2", "was not read"},
        .also = {"D05.operands_alive", "D60.host_memory_operands", "D66.library_workspace"}},
       {.name = "when it was launched is not known",
        .change =
            [](WatchedJob& job) {
              auto& update = lines<record::GraphUpdateLine>(job, 1)[0];
              update.result = 910;
              update.seconds.reset();
            },
        .want = record::Result::unexercised,
        .rank = std::nullopt,
        .mentions = {"was not seen"}},
       {.name = "no update",
        .change =
            [](WatchedJob& job) {
              for (std::size_t rank : {0u, 1u}) {
                lines<record::GraphUpdateLine>(job, rank).clear();
                lines<record::ReplaysLine>(job, rank)[1].updates = 0;
              }
            },
        .want = record::Result::unexercised,
        .rank = std::nullopt,
        .mentions = {"no graph was updated"}}});
}

TEST(WatchedExecUpdate, AProgramThatInstantiatesAnewAfterARefusalIsSound) {
  WatchedJob job = clean_job();
  auto& update = lines<record::GraphUpdateLine>(job, 1)[0];
  update.result = 910;
  update.seconds = 20.0;  // after the last launch
  EXPECT_EQ(result_of("D62.exec_update", job).result, record::Result::pass);
  update.result = 0;
  update.clusters = update.kept_clusters = 1;
  EXPECT_EQ(result_of("D62.exec_update", job).result, record::Result::pass);
}

}  // namespace
}  // namespace graphproof::checks::watched

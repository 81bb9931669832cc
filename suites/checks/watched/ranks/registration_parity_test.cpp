#include <gtest/gtest.h>

#include "suites/checks/watched/testing/watched_rows.h"

namespace graphproof::checks::watched {
namespace {

/// As if the user had asked for registrations, with a log of them.
void with_logs(WatchedJob& job, std::int64_t of_rank_0, std::int64_t of_rank_1) {
  for (std::size_t rank : {0u, 1u}) {
    line_of(job, rank).settings["NCCL_GRAPH_REGISTER"] = "1";
    lines<record::NcclRegistrationLine>(
        job, rank) = {{.file = "nccl.log", .ipc = rank == 0 ? of_rank_0 : of_rank_1}};
  }
}

TEST(WatchedRegistrationParity, Rows) {
  judge_watched_rows("D27.registration_parity",
                     {{.name = "one rank registers nothing",
                       .change = [](WatchedJob& job) { with_logs(job, 2, 0); },
                       .rank = 1,
                       .mentions = {"0 registrations against 2", "rank 0 (node-1.4711)"}},
                      {.name = "expandable segments",
                       .change =
                           [](WatchedJob& job) {
                             for (std::size_t rank : {0u, 1u}) {
                               auto& line = line_of(job, rank);
                               line.settings.erase("NCCL_GRAPH_REGISTER");
                               line.settings["PYTORCH_CUDA_ALLOC_CONF"] =
                                   "expandable_segments:True";
                               line.libraries[0].version = 22809;
                             }
                           },
                       .rank = 0,
                       .mentions = {"libnccl 2.28.9", "expandable_segments:False", "torchtitan"}},
                      {.name = "no log",
                       .change =
                           [](WatchedJob& job) {
                             for (std::size_t rank : {0u, 1u})
                               line_of(job, rank).settings.erase("NCCL_GRAPH_REGISTER");
                           },
                       .want = record::Result::unexercised,
                       .rank = std::nullopt,
                       .mentions = {"NCCL_DEBUG_SUBSYS=REG"}}});
}

TEST(WatchedRegistrationParity, EqualRegistrationsPass) {
  WatchedJob job = clean_job();
  with_logs(job, 2, 2);
  EXPECT_EQ(result_of("D27.registration_parity", job).result, record::Result::pass);
}

}  // namespace
}  // namespace graphproof::checks::watched

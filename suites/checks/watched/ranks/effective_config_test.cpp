#include <gtest/gtest.h>

#include "suites/checks/watched/testing/watched_rows.h"

namespace graphproof::checks::watched {
namespace {

TEST(WatchedEffectiveConfig, Rows) {
  judge_watched_rows(
      "D28.effective_config",
      {{.name = "a setting differs",
        .change =
            [](WatchedJob& job) {
              line_of(job, 0).settings["NCCL_ALGO"] = "Ring";
              line_of(job, 1).settings["NCCL_ALGO"] = "Tree";
            },
        .rank = 1,
        .mentions = {"NCCL_ALGO", "Tree", "Ring"}},
       {.name = "a setting of one rank",
        .change =
            [](WatchedJob& job) {
              line_of(job, 1).settings["PYTORCH_ALLOC_CONF"] = "max_split_size_mb:64";
            },
        .rank = 1,
        .mentions = {"PYTORCH_ALLOC_CONF", "not set"}},
       {.name = "a version differs",
        .change = [](WatchedJob& job) { line_of(job, 1).libraries[0].version = 23008; },
        .rank = 1,
        .mentions = {"version of libnccl", "23008"}},
       {.name = "evidence of one rank of two",
        .change = [](WatchedJob& job) { job.processes.pop_back(); },
        .want = record::Result::unexercised,
        .rank = std::nullopt,
        .mentions = {"evidence of 1 of 2 ranks"},
        .also = {"*"}}});
}

TEST(WatchedEffectiveConfig, OneProcessHasNothingToAgreeWith) {
  WatchedJob job = clean_job();
  job.processes.pop_back();
  line_of(job, 0).rank.reset();
  line_of(job, 0).world_size.reset();
  for (const char* check : {"D24.rank_signatures", "D26.participation", "D27.registration_parity",
                            "D28.effective_config"})
    EXPECT_EQ(record::name(result_of(check, job).result), "not_applicable") << check;
}

TEST(WatchedEffectiveConfig, WhatBelongsToAMachineMayDiffer) {
  WatchedJob job = clean_job();
  line_of(job, 1).settings["NCCL_IB_HCA"] = "mlx5_1";
  line_of(job, 1).settings["CUDA_VISIBLE_DEVICES"] = "1";
  line_of(job, 1).settings["TORCH_NCCL_DEBUG_INFO_TEMP_FILE"] = "/logs/rank1_";
  EXPECT_EQ(result_of("D28.effective_config", job).result, record::Result::pass);
}

}  // namespace
}  // namespace graphproof::checks::watched

// The text of pipelines for continuous integration that run a profile in shards and merge the runs.
// Pure functions of their options.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace graphproof::cli {

/// The options of a pipeline.
struct Pipeline {
  std::string profile = "nightly", device = "cuda", budget;
  int shards = 4;
  std::vector<std::string> tags = {"gpu"};  // of the runners
};

/// Jobs that run concurrently, and one that afterwards merges the runs they left. A shard that
/// failed or was lost makes the pipeline fail, but the report is still made.
std::string gitlab_pipeline(const Pipeline& pipeline);
std::string github_pipeline(const Pipeline& pipeline);
/// A script that submits an array of shards and a job that merges them after all of them have
/// ended, however they ended.
std::string slurm_pipeline(const Pipeline& pipeline);

}  // namespace graphproof::cli

// Pipelines that run a profile in shards and merge them, for continuous integration. Text from
// options, pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace graphproof::cli {

struct Pipeline {
  std::string profile = "nightly", device = "cuda", budget;
  int shards = 4;
  std::vector<std::string> tags = {"gpu"};  // of the runners
};

/// Jobs that run side by side, then one that merges whatever they left, so that a shard which
/// failed or was lost makes the pipeline fail and not the report.
std::string gitlab_pipeline(const Pipeline& pipeline);
std::string github_pipeline(const Pipeline& pipeline);
/// A script that submits an array of shards and a job that merges them, which waits for all of them
/// however they end.
std::string slurm_pipeline(const Pipeline& pipeline);

}  // namespace graphproof::cli

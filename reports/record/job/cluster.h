// cluster.json: how a run gets its nodes; written by a run that has any, so that what resumes it
// asks for the same.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "reports/record/text/fields.h"

namespace graphproof::record {

inline constexpr std::string_view kClusterSchema = "graphproof-cluster/1";

/// Members that are "" or empty are not asked for.
struct Cluster {
  std::string engine = "local";  // local, mpirun, slurm, slurm-array
  int nodes = 1;                 // of slurm-array: tasks at once
  int slots = 4;                 // of a node: GPUs on cuda, ranks on sim
  int cpus_per_slot = 1;
  std::vector<std::string> hosts = {};  // of mpirun, one agent each
  std::string partition = {}, account = {}, qos = {}, time_limit = {};
  std::vector<std::string> constraints = {};      // FEATURE, or ARCH=FEATURE for one architecture
  std::string arch = {};                          // which the run asks for: sm_90
  std::vector<std::string> slurm_arguments = {};  // passed on as they are: --reservation=R, --mem=0
  std::string container_image = {}, container_mounts = {};  // pyxis
  std::string apptainer_image = {};
  std::string environment_file = {};                 // NAME=VALUE a line, for agents and ranks
  std::int64_t queue_limit_ms = 24 * 3600 * 1000ll;  // how long a run waits for its nodes

  bool operator==(const Cluster&) const = default;
};

Json to_json(const Cluster& cluster);
Cluster cluster_from(const nlohmann::json& value, const std::string& where);

}  // namespace graphproof::record

// cluster.json: how a run gets its nodes. A run that uses nodes writes it, so that a resumed run
// asks for the same ones.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "reports/record/text/fields.h"

namespace graphproof::record {

inline constexpr std::string_view kClusterSchema = "graphproof-cluster/1";

/// What to ask a cluster for. Members that are "" or empty are not asked for.
struct Cluster {
  std::string engine = "local";  // local, mpirun, slurm, slurm-array
  int nodes = 1;                 // for slurm-array: the tasks that run at once
  int slots = 4;                 // of each node: GPUs on cuda, ranks on sim
  int cpus_per_slot = 1;
  std::vector<std::string> hosts = {};  // for mpirun; each gets one agent
  std::string partition = {}, account = {}, qos = {}, time_limit = {};
  std::vector<std::string> constraints = {};      // FEATURE, or ARCH=FEATURE for one architecture
  std::string arch = {};                          // the GPU architecture, such as sm_90
  std::vector<std::string> slurm_arguments = {};  // passed on unchanged: --reservation=R, --mem=0
  std::string container_image = {}, container_mounts = {};  // for pyxis
  std::string apptainer_image = {};
  std::string environment_file = {};                 // lines NAME=VALUE, for agents and ranks
  std::int64_t queue_limit_ms = 24 * 3600 * 1000ll;  // how long a run waits for its nodes

  bool operator==(const Cluster&) const = default;
};

Json to_json(const Cluster& cluster);
Cluster cluster_from(const nlohmann::json& value, const std::string& where);

}  // namespace graphproof::record

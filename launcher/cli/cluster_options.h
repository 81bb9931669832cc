// The options with which a run uses other nodes than this host, and their meaning.
#pragma once

#include <CLI/CLI.hpp>

#include <filesystem>
#include <memory>
#include <string>

#include "launcher/backend/programs.h"
#include "launcher/cli/verb.h"
#include "launcher/run/allocation.h"
#include "launcher/run/run.h"
#include "reports/record/job/cluster.h"

namespace graphproof::cli {

/// The values of the options. `cluster` has those that need no interpretation.
struct ClusterOptions {
  record::Cluster cluster;
  std::string hosts, queue_limit;  // as they are written
};
void declare(CLI::App& app, ClusterOptions& options);

/// The cluster that the options describe. Throws InputError for contradictions, such as hosts
/// without mpirun or a partition without Slurm.
record::Cluster cluster_of(const ClusterOptions& options);

/// The device of the cluster's nodes, with the slots of one node. One node is asked for its stack,
/// which may wait in a queue. For this host the same as device_of(). Throws InputError if `wanted`
/// is auto, because the GPUs of nodes are not known before these are allocated, and if ranks would
/// share GPUs on other hosts.
launcher::Device device_on(const record::Cluster& cluster, const std::string& wanted,
                           const Surroundings& surroundings,
                           const record::GpuSharing& sharing = {});

/// What reserves the nodes and starts agents on them; null if the run uses this host.
std::shared_ptr<launcher::Allocation> allocation(const record::Cluster& cluster,
                                                 const launcher::RunSetup& setup,
                                                 const Surroundings& surroundings);

/// The cluster.json of a run folder; the default (this host) if there is none.
record::Cluster recorded_cluster(const std::filesystem::path& run_folder);
void write_cluster(const record::Cluster& cluster, const std::filesystem::path& run_folder);

}  // namespace graphproof::cli

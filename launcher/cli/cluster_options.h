// The options by which a run gets other nodes than this host, and what they mean.
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

struct ClusterOptions {
  record::Cluster cluster;
  std::string hosts, queue_limit;  // as they are written
};
void declare(CLI::App& app, ClusterOptions& options);

/// The cluster that is asked for. InputError for what contradicts itself: hosts without mpirun, a
/// partition without Slurm.
record::Cluster cluster_of(const ClusterOptions& options);

/// The device of its nodes, whose slots are those of one node: asked of a node, so it waits as long
/// as that takes. On this host as device_of(). InputError where `wanted` is auto: what nodes have
/// is not known before they are there; and where ranks are to share other hosts' GPUs.
launcher::Device device_on(const record::Cluster& cluster, const std::string& wanted,
                           const Surroundings& surroundings, int ranks_per_gpu = 1);

/// Null for this host.
std::shared_ptr<launcher::Allocation> allocation(const record::Cluster& cluster,
                                                 const launcher::RunSetup& setup,
                                                 const Surroundings& surroundings);

/// cluster.json of a run folder; that of this host where there is none.
record::Cluster recorded_cluster(const std::filesystem::path& run_folder);
void write_cluster(const record::Cluster& cluster, const std::filesystem::path& run_folder);

}  // namespace graphproof::cli

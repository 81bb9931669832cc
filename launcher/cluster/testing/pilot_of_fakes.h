// For tests of runs on nodes: an allocation with the program's own agents, whose ranks follow a
// script.
#pragma once

#include <filesystem>
#include <utility>

#include "launcher/cluster/commands.h"
#include "launcher/cluster/pilot.h"
#include "launcher/run/run.h"

namespace graphproof::cluster {

/// REQUIRES: the caller is a program in the build's folder of tests.
inline AgentStart agents_of_fakes(const launcher::RunSetup& setup) {
  const std::filesystem::path tests = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  return {
      setup.run.run_id,  setup.run.device, setup.folder, {}, tests.parent_path() / "bin/graphproof",
      setup.rank_program};
}

/// Makes `setup` that of a run on such nodes; the launcher is slurm, if `options` name none.
inline PilotSetup pilot_of_fakes(launcher::RunSetup& setup, record::Cluster options,
                                 const launcher::Environment& environment) {
  if (options.engine == "local") options.engine = "slurm";
  setup.run.slots = options.slots;
  setup.run.engine = options.engine;
  const AgentStart start = agents_of_fakes(setup);
  PilotSetup pilot{.run_folder = setup.folder,
                   .nodes = options.nodes,
                   .slots = options.slots,
                   .command =
                       [=](const std::filesystem::path& channels) {
                         AgentStart agents = start;
                         agents.channels = channels;
                         return pilot_command(options, agents, environment);
                       },
                   .cancel = {},
                   .granted = granted_message(options)};
  if (options.engine == "slurm") pilot.cancel = cancel_command(setup.run.run_id, environment);
  return pilot;
}

}  // namespace graphproof::cluster

// The options that say how a run proceeds, and the set-up of a new or recorded run.
#pragma once

#include <CLI/CLI.hpp>

#include <filesystem>
#include <optional>
#include <string>

#include "launcher/backend/programs.h"
#include "launcher/cli/cluster_options.h"
#include "launcher/cli/verb.h"
#include "launcher/run/run.h"

namespace graphproof::cli {

/// How a run proceeds, independent of its cases.
struct RunOptions {
  std::optional<std::string> run_dir;
  std::string isolation, budget;
  int max_fail = 0, confirm = 0;
  double max_gpu_minutes = 0;
  bool cold = false;
  ClusterOptions cluster;
};
void declare(CLI::App& app, RunOptions& options);

/// A new id for a run that begins now.
std::string new_run_id();
/// A RunSetup without plan, profile and folder.
launcher::RunSetup run_setup(const launcher::Device& device, const RunOptions& options,
                             const Surroundings& surroundings);
/// The same with a new run folder. Options that contradict each other throw InputError before the
/// folder is made.
launcher::RunSetup new_run(const launcher::Device& device, const RunOptions& options,
                           const Surroundings& surroundings);
/// The RunSetup of a recorded run. Throws InputError if the run cannot be continued here: the stack
/// is another one, or the plan is not the recorded one.
launcher::RunSetup recorded_run(const std::filesystem::path& folder,
                                const Surroundings& surroundings);

}  // namespace graphproof::cli

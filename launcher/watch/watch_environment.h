// The environment variables by which every process of a watched command loads the probe and writes
// into the folder of the run. All other variables stay as they are.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/host/child.h"

namespace graphproof::launcher {

/// How a command is watched.
struct WatchSettings {
  std::filesystem::path probe;         ///< libgraphproof-probe.so, absolute
  std::filesystem::path probe_folder;  ///< where the probes write, absolute
  std::filesystem::path nccl_folder;   ///< where NCCL's log goes, absolute
  std::string profile = "quick";       ///< quick or full
  bool cupti = true;                   ///< whether the probes may subscribe to driver calls
  std::string ras_address;             ///< where NCCL can be asked about a hang; empty: its default
  std::vector<std::string> command;    ///< what is watched; empty if it is started by hand
};

/// What is set, and what could not be set because the user has set it.
struct WatchEnvironment {
  Environment variables;
  std::vector<std::string> notes;  ///< one sentence each
};

/// `own` is the environment that the command would have without being watched. Open MPI starts
/// ranks of other hosts without it; where the command is its mpirun, a variable names ours among
/// those that it hands on. It refuses to start if the user names some by -x as well, so then a note
/// says which to add.
WatchEnvironment watch_environment(const Environment& own, const WatchSettings& settings);

/// How --attach-only writes the variables.
enum class EnvironmentForm {
  shell,      ///< lines for a shell: export NAME='value'
  env,        ///< words before a command: env NAME='value' ..., as for ssh and sudo
  docker,     ///< options of docker run and podman run, with the folders
  apptainer,  ///< options of apptainer exec and singularity exec, with the folders
};
/// Nothing if there is no such form.
std::optional<EnvironmentForm> environment_form(std::string_view name);

/// The variables in this form, quoted for a shell, with a line's end. `folder` is that of the run.
std::string in_form(EnvironmentForm form, const Environment& variables,
                    const std::filesystem::path& folder);

/// The options of docker for a command that has the variables: it hands their values on.
std::string container_options(const Environment& variables, const std::filesystem::path& folder);

}  // namespace graphproof::launcher

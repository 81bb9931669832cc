// Commands that start programs where the probe does not follow by itself: the programs do not
// descend from the command, or do not get its environment. `docker run` asks a daemon, ssh another
// host, sbatch a queue. The table is data; what was started there is seen by its evidence alone.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "launcher/host/child.h"

namespace graphproof::launcher {

/// What the words of one command say about what it starts.
struct StartsElsewhere {
  enum class Place {
    container,  ///< on this host, below a daemon
    host,       ///< another host
    job,        ///< wherever a scheduler puts it
  };
  std::string by;  ///< "docker run"
  Place place = Place::container;
  std::string where;            ///< of ssh, the host
  bool hands_probe_on = false;  ///< its words name CUDA_INJECTION64_PATH
  /// Launchers of ranks start their daemon on other hosts by ssh and hand the variables on
  /// themselves.
  bool by_a_launcher = false;

  bool operator==(const StartsElsewhere&) const = default;
};

/// Nothing for a command that starts its programs as its descendants, with its environment, or none
/// that could use CUDA, such as `docker ps` and what git runs by ssh.
std::optional<StartsElsewhere> starts_elsewhere(const std::vector<std::string>& words);

/// Where evidence came from that no descendant of the launcher left.
struct EvidenceElsewhere {
  std::size_t hosts = 0;      ///< other hosts, by their names; a container often has its own
  std::size_t processes = 0;  ///< of this host
};

/// Those of `commands` from whose place no evidence came. Which evidence belongs to which command
/// is not known, so it is counted: a host for each that ssh names, and a host or a process for each
/// job and for each container whose command hands the probe on.
std::vector<StartsElsewhere> without_evidence(const std::vector<StartsElsewhere>& commands,
                                              const EvidenceElsewhere& evidence);

/// What makes watched what such a command starts. `container`: container_options().
std::string how_to_watch(const StartsElsewhere& command, const std::string& container);

}  // namespace graphproof::launcher

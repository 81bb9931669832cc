// Which CPUs the ranks of a slot run on: whole cores, near the slot's GPU, and no other slot's. The driver says what is near;
// hwloc would too, but its archive needs libudev, which not every node has.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "launcher/nvml.h"

namespace graphproof::launcher {

using Cpus = std::vector<int>;  // ascending

/// This host's cores: of each the CPUs (hardware threads) that this process may use.
std::vector<Cpus> cores();

/// One list a slot. `near`: for each slot the CPUs near its GPU; nothing where nobody can tell. All lists are empty where
/// not every slot can have a core of its own: then nobody is pinned.
std::vector<Cpus> divide(const std::vector<Cpus>& cores, const std::vector<std::optional<Cpus>>& near);

/// Of this host's cores, for slots that are these GPUs.
std::vector<Cpus> cpus_of(const Nvml& nvml, const std::vector<std::string>& gpus);

}  // namespace graphproof::launcher

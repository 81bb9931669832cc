// Which CPUs the ranks of a slot run on: whole cores, near the slot's GPU, and of no other slot.
// hwloc knows the cores and what is near to what.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "launcher/gpu/nvml.h"

struct hwloc_topology;

namespace graphproof::launcher {

using Cpus = std::vector<int>;  // ascending

/// This host as hwloc sees it; without a core where hwloc sees nothing. The environment variable
/// HWLOC_XMLFILE names a file to look at instead.
class HostTopology {
 public:
  HostTopology();
  ~HostTopology();
  HostTopology(const HostTopology&) = delete;
  HostTopology& operator=(const HostTopology&) = delete;

  /// For each core the CPUs (hardware threads) that this process may use.
  std::vector<Cpus> cores() const;
  /// The CPUs near a GPU. Nothing where hwloc does not see the GPU, as in some containers.
  std::optional<Cpus> near(const Nvml::PciAddress& gpu) const;

 private:
  hwloc_topology* topology_ = nullptr;  // null: hwloc could not be set up
};

/// Divides the cores among slots, one list of CPUs a slot. `near`: for each slot the CPUs near its
/// GPU; nothing where that is unknown. All lists are empty where not every slot can have a core of
/// its own: then ranks run on any CPU.
std::vector<Cpus> divide(const std::vector<Cpus>& cores,
                         const std::vector<std::optional<Cpus>>& near);

/// divide() of this host's cores, for slots that are these GPUs.
std::vector<Cpus> cpus_of(const Nvml& nvml, const std::vector<std::string>& gpus);

}  // namespace graphproof::launcher

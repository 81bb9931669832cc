#include "launcher/gpu/cpus.h"

#include <hwloc.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <memory>
#include <numeric>
#include <utility>

namespace graphproof::launcher {
namespace {

bool overlap(const Cpus& left, const Cpus& right) {
  return std::any_of(left.begin(), left.end(),
                     [&](int cpu) { return std::binary_search(right.begin(), right.end(), cpu); });
}

Cpus cpus_in(hwloc_const_cpuset_t set) {
  Cpus cpus;
  for (int cpu = hwloc_bitmap_first(set); cpu >= 0; cpu = hwloc_bitmap_next(set, cpu))
    cpus.push_back(cpu);
  return cpus;
}

}  // namespace

HostTopology::HostTopology() {
  if (hwloc_topology_init(&topology_) != 0) topology_ = nullptr;
  if (topology_ == nullptr) return;
  hwloc_topology_set_io_types_filter(topology_, HWLOC_TYPE_FILTER_KEEP_IMPORTANT);
  // The PCI bus is asked where a GPU is, and not the GPU's libraries, which may leave a context on
  // it.
  for (const char* library : {"cuda", "gl", "nvml", "opencl"})
    hwloc_topology_set_components(topology_, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, library);
  if (hwloc_topology_load(topology_) == 0) return;
  hwloc_topology_destroy(topology_);
  topology_ = nullptr;
}

HostTopology::~HostTopology() {
  if (topology_ != nullptr) hwloc_topology_destroy(topology_);
}

std::vector<Cpus> HostTopology::cores() const {
  std::vector<Cpus> found;
  if (topology_ == nullptr) return found;
  const std::unique_ptr<hwloc_bitmap_s, decltype(&hwloc_bitmap_free)> usable(
      hwloc_bitmap_alloc_full(), hwloc_bitmap_free);
  // hwloc refuses this for a topology from a file, of which all CPUs may be used.
  hwloc_get_cpubind(topology_, usable.get(), HWLOC_CPUBIND_PROCESS);
  for (hwloc_obj_t core = nullptr;
       (core = hwloc_get_next_obj_by_type(topology_, HWLOC_OBJ_CORE, core)) != nullptr;) {
    Cpus cpus = cpus_in(core->cpuset);
    std::erase_if(cpus, [&](int cpu) {
      return !hwloc_bitmap_isset(usable.get(), static_cast<unsigned>(cpu));
    });
    if (!cpus.empty()) found.push_back(std::move(cpus));
  }
  std::sort(found.begin(), found.end());
  return found;
}

std::optional<Cpus> HostTopology::near(const Nvml::PciAddress& gpu) const {
  const hwloc_obj_t device =
      topology_ ? hwloc_get_pcidev_by_busid(topology_, gpu.domain, gpu.bus, gpu.device, 0)
                : nullptr;
  if (device == nullptr) return std::nullopt;
  return cpus_in(hwloc_get_non_io_ancestor_obj(topology_, device)->cpuset);
}

std::vector<Cpus> divide(const std::vector<Cpus>& cores,
                         const std::vector<std::optional<Cpus>>& near) {
  std::vector<int> all(cores.size());
  std::iota(all.begin(), all.end(), 0);
  std::map<std::vector<int>, std::vector<std::size_t>>
      slots_of;  // by the cores that are near to them
  for (std::size_t slot = 0; slot < near.size(); ++slot) {
    std::vector<int> here;
    std::copy_if(all.begin(), all.end(), std::back_inserter(here), [&](int core) {
      return !near[slot] || overlap(cores[static_cast<std::size_t>(core)], *near[slot]);
    });
    slots_of[here].push_back(slot);
  }
  // Neighbourhoods that overlap only in part cannot be divided: they count for nothing.
  const bool cut = std::any_of(slots_of.begin(), slots_of.end(), [&](const auto& left) {
    return std::any_of(slots_of.begin(), slots_of.end(), [&](const auto& right) {
      return left.first != right.first && overlap(left.first, right.first);
    });
  });
  if (cut) {
    std::vector<std::size_t> slots(near.size());
    std::iota(slots.begin(), slots.end(), 0);
    slots_of = {{all, slots}};
  }
  std::vector<Cpus> divided(near.size());
  for (const auto& [here, slots] : slots_of) {
    if (here.size() < slots.size()) return std::vector<Cpus>(near.size());
    for (std::size_t i = 0; i < slots.size(); ++i) {
      Cpus& own = divided[slots[i]];
      for (std::size_t at = i * here.size() / slots.size();
           at < (i + 1) * here.size() / slots.size(); ++at) {
        const Cpus& core = cores[static_cast<std::size_t>(here[at])];
        own.insert(own.end(), core.begin(), core.end());
      }
      std::sort(own.begin(), own.end());
    }
  }
  return divided;
}

std::vector<Cpus> cpus_of(const Nvml& nvml, const std::vector<std::string>& gpus) {
  std::vector<std::optional<Cpus>> near;
  const HostTopology host;
  for (const std::string& gpu : gpus) {
    const auto address = nvml.pci_address(gpu);
    near.push_back(address ? host.near(*address) : std::nullopt);
  }
  return divide(host.cores(), near);
}

}  // namespace graphproof::launcher

#include "launcher/cpus.h"

#include <sched.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <numeric>

#include "launcher/processes.h"

namespace graphproof::launcher {
namespace {

bool overlap(const Cpus& left, const Cpus& right) {
  return std::any_of(left.begin(), left.end(), [&](int cpu) { return std::binary_search(right.begin(), right.end(), cpu); });
}

}  // namespace

std::vector<Cpus> cores() {
  cpu_set_t usable;
  CPU_ZERO(&usable);
  if (sched_getaffinity(0, sizeof usable, &usable) != 0) return {};
  // Threads of one core name the same siblings.
  std::map<std::string, Cpus> by_siblings;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &usable)) continue;
    const std::string siblings = proc_text("/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/thread_siblings_list");
    by_siblings[siblings.empty() ? std::to_string(cpu) : siblings].push_back(cpu);
  }
  std::vector<Cpus> found;
  for (auto& [siblings, cpus] : by_siblings) found.push_back(std::move(cpus));
  std::sort(found.begin(), found.end());
  return found;
}

std::vector<Cpus> divide(const std::vector<Cpus>& cores, const std::vector<std::optional<Cpus>>& near) {
  std::vector<int> all(cores.size());
  std::iota(all.begin(), all.end(), 0);
  std::map<std::vector<int>, std::vector<std::size_t>> slots_of;  // by the cores that are near
  for (std::size_t slot = 0; slot < near.size(); ++slot) {
    std::vector<int> here;
    std::copy_if(all.begin(), all.end(), std::back_inserter(here),
                 [&](int core) { return !near[slot] || overlap(cores[static_cast<std::size_t>(core)], *near[slot]); });
    slots_of[here].push_back(slot);
  }
  // Neighbourhoods that cut through each other are none.
  const bool cut = std::any_of(slots_of.begin(), slots_of.end(), [&](const auto& left) {
    return std::any_of(slots_of.begin(), slots_of.end(), [&](const auto& right) { return left.first != right.first && overlap(left.first, right.first); });
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
      for (std::size_t at = i * here.size() / slots.size(); at < (i + 1) * here.size() / slots.size(); ++at) {
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
  for (const std::string& gpu : gpus) near.push_back(nvml.near_cpus(gpu));
  return divide(cores(), near);
}

}  // namespace graphproof::launcher

// D28 in a watched run: ranks agree on versions and on the settings that change how graphs and
// communication work.
#include <algorithm>
#include <array>
#include <map>

#include "suites/checks/attempt/concat.h"
#include "suites/checks/watched/job/watched_judgement.h"

namespace graphproof::checks::watched::d28 {
namespace {

constexpr std::array kSettings = {"PYTORCH_CUDA_ALLOC_CONF",     "PYTORCH_ALLOC_CONF",
                                  "CUDA_DEVICE_MAX_CONNECTIONS", "CUDA_LAUNCH_BLOCKING",
                                  "CUBLAS_WORKSPACE_CONFIG",     "NVIDIA_TF32_OVERRIDE"};
// Of these, all but the ones that belong to a machine or to a log.
constexpr std::array kFamilies = {"NCCL_", "TORCH_NCCL_", "NVTE_"};
constexpr std::array kOfTheMachine = {"NCCL_SOCKET_IFNAME", "NCCL_IB_",
                                      "NCCL_HOSTID",        "NCCL_TOPO_",
                                      "NCCL_DEBUG",         "NCCL_RAS_",
                                      "NCCL_GRAPH_DUMP",    "NCCL_NET_GDR",
                                      "NCCL_PROFILER_",     "TORCH_NCCL_DEBUG_INFO_"};

template <class List>
bool begins_with_any(const std::string& text, const List& begins) {
  return std::ranges::any_of(begins, [&](const char* begin) { return text.starts_with(begin); });
}

/// What has to be equal on all ranks, by name.
std::map<std::string, std::string> shared(const JobProcess& process) {
  std::map<std::string, std::string> facts = {
      {"version of PyTorch", process.line().torch},
      {"CUDA version of the driver", concat(process.line().driver_version)}};
  for (const auto& [name, version] : process.line().packages) facts["version of " + name] = version;
  for (const record::LoadedLibrary& library : process.line().libraries)
    if (library.version != 0) facts["version of " + library.name] = concat(library.version);
  for (const auto& [name, value] : process.line().settings)
    if (std::ranges::count(kSettings, name) > 0 ||
        (begins_with_any(name, kFamilies) && !begins_with_any(name, kOfTheMachine)))
      facts[name] = value;
  return facts;
}

}  // namespace

record::CheckResult effective_config(WatchedJudgement& judgement, const WatchedJob& job) {
  const std::vector<const JobProcess*> all = judgement.all_ranks();
  for (const JobProcess* process : all) judgement.confirm(*process);
  for (const JobProcess& process : job.processes)
    if (process.has_graphs() && std::ranges::count(all, &process) == 0)
      judgement.excuse(process, "it is no rank");
  for (std::size_t i = 1; i < all.size(); ++i) {
    const auto want = shared(*all[0]), got = shared(*all[i]);
    for (const auto& [name, value] : want) {
      const auto found = got.find(name);
      // A library or package that one rank did not load is no disagreement.
      const bool setting = !name.starts_with("version of");
      if (found == got.end() ? !setting : found->second == value) continue;
      const std::string other = found == got.end() ? "" : found->second;
      judgement.defect(*all[i], {.what = concat(name, " differs from that of ", all[0]->title()),
                                 .got = other.empty() ? "not set" : other,
                                 .want = value,
                                 .why = "ranks with different settings or libraries can capture "
                                        "different graphs, or wait for each other",
                                 .next = "start all ranks with one environment and one software "
                                         "stack"});
    }
    for (const auto& [name, value] : got)
      if (!want.contains(name) && !name.starts_with("version of"))
        judgement.defect(*all[i], {.what = concat(name, " is set, but not for ", all[0]->title()),
                                   .got = value,
                                   .want = "not set, as there",
                                   .why = "ranks with different settings can capture different "
                                          "graphs, or wait for each other",
                                   .next = "start all ranks with one environment"});
  }
  return judgement.result(concat(all.size(), " ranks agree"),
                          "the same versions and settings on all ranks");
}

}  // namespace graphproof::checks::watched::d28

// D28 in a watched run: each process has one libnccl.
#include <set>

#include "suites/checks/attempt/concat.h"
#include "suites/checks/watched/job/watched_judgement.h"

namespace graphproof::checks::watched::d28 {

record::CheckResult one_libnccl(WatchedJudgement& judgement, const WatchedJob& job) {
  std::set<std::string> versions;
  for (const JobProcess& process : job.processes) {
    if (!process.has_graphs()) continue;
    std::set<std::string> paths;
    for (const record::LoadedLibrary& library : process.line().libraries)
      if (library.name == "libnccl") {
        paths.insert(library.path);
        versions.insert(concat(library.version));
      }
    if (paths.empty()) {
      judgement.excuse(process, "libnccl is not loaded");
      continue;
    }
    judgement.confirm(process);
    if (paths.size() == 1) continue;
    std::string got;
    for (const std::string& path : paths) got += (got.empty() ? "" : " and ") + path;
    judgement.defect(process, {.what = concat(paths.size(), " libraries of NCCL are loaded"),
                               .got = got,
                               .want = "one",
                               .why = "parts of the program use different versions of NCCL, whose "
                                      "graphs and communicators do not know of each other",
                               .next = "take the other one out of LD_LIBRARY_PATH and LD_PRELOAD, "
                                       "or link the extension to the NCCL of PyTorch"});
  }
  std::string summary = "one libnccl in each process";
  for (const std::string& version : versions) summary += concat(", version ", version);
  return judgement.result(summary, "one libnccl in each process");
}

}  // namespace graphproof::checks::watched::d28

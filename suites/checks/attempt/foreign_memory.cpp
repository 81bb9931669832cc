#include "suites/checks/attempt/foreign_memory.h"

#include <map>

#include "suites/checks/attempt/concat.h"

namespace graphproof::checks {

std::string foreign_memory(const Attempt& attempt) {
  if (shared_gpus(attempt))
    return "ranks of this case shared GPUs, and the driver counts the memory of all of them";
  for (const RankFiles& files : attempt.ranks) {
    std::map<std::string, std::int64_t> latest;  // by arm: the device's bytes beside the allocator
    for (const record::MemoryLine& line : files.lines<record::MemoryLine>()) {
      const bool eager = line.arm == "solo_eager",
                 replays = line.arm == "solo_graph" && line.when == "step";
      if (!line.device || !(eager || replays)) continue;
      const std::int64_t beside = *line.device - line.reserved;
      const auto [before, first] = latest.emplace(line.arm, beside);
      const std::int64_t fall = before->second - beside;
      before->second = beside;
      if (fall > kLargestOwnFallBytes)
        return concat("other processes used the GPU of rank ", files.rank, ": ", fall >> 20,
                      " MiB beside its allocator were freed at step ", line.step, " of arm ",
                      line.arm);
    }
  }
  return "";
}

}  // namespace graphproof::checks

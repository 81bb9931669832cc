// D64: how much a captured optimizer step copies within device memory.
#include <algorithm>

#include "suites/checks/attempt/concat.h"
#include "suites/checks/watched/job/watched_judgement.h"

namespace graphproof::checks::watched::d64 {
namespace {

// A step that copies more than all memory that PyTorch has allocated moves each byte more than
// once. What an optimizer with master weights has to copy, each weight once, is a sixth of the
// memory of weights, gradients, master weights and two moments at most.
constexpr double kMostCopiedPart = 1.0;

/// Bytes that PyTorch's allocator held, at most, in any snapshot; 0 if none was taken.
std::int64_t allocated(const JobProcess& process) {
  std::int64_t most = 0;
  for (const auto& snapshot : process.of<record::MemoryPoolsLine>()) {
    std::int64_t sum = 0;
    for (const record::PoolMemory& pool : snapshot.pools) sum += pool.active_bytes;
    most = std::max(most, sum);
  }
  return most;
}

}  // namespace

record::CheckResult captured_copies(WatchedJudgement& judgement, const WatchedJob& job) {
  std::int64_t most = 0;
  for (const JobProcess& process : job.processes) {
    if (!process.has_graphs()) continue;
    const std::int64_t held = allocated(process);
    bool any = false;
    for (const Executable& one : executables(process)) {
      if (one.launches() == 0 || !one.graph || !one.capture) continue;
      const std::int64_t steps = one.capture->optimizer_steps.value_or(0);
      if (steps == 0) continue;
      any = true;
      if (held == 0) {
        judgement.unexercised(
            concat(process.title(), ": what PyTorch's allocator held was not looked up"));
        continue;
      }
      const std::int64_t copied = one.graph->copied_bytes / steps;
      most = std::max(most, copied);
      if (static_cast<double>(copied) <= kMostCopiedPart * static_cast<double>(held)) continue;
      judgement.defect(
          process, {.what = concat(one.title(),
                                   ", copies more in an optimizer step than all "
                                   "memory that PyTorch holds"),
                    .got = concat(copied, " bytes a step, of ", held, " that are allocated"),
                    .want = "each weight copied once at most",
                    .why = "each replay repeats the copies: of a state that was saved and "
                           "restored around the capture they do nothing but take time",
                    .next = "update the state in place, or take the copies out of the capture"});
    }
    if (any)
      judgement.confirm(process);
    else
      judgement.excuse(process, "no graph that was launched has an optimizer's step");
  }
  return judgement.result(concat("at most ", most, " bytes copied in a captured optimizer step"),
                          "fewer bytes copied than are allocated");
}

}  // namespace graphproof::checks::watched::d64

// D30: the memory of a graph arm is returned after the arm was dropped.
#include <algorithm>

#include "suites/checks/attempt/concat.h"
#include "suites/checks/attempt/foreign_memory.h"
#include "suites/checks/memory/quantity.h"

namespace graphproof::checks::d30 {

using record::MemoryLine;

/// What the driver took for itself, beside the allocator, when the step was captured a second time
/// while the first graphs were alive. On H100s (driver 580.159.04) it keeps these pages when all
/// graphs are gone. 0 if nothing was captured again.
static double kept_for_second_capture(Judgement& judgement, const RankFiles& files) {
  const MemoryLine* step = nullptr;
  for (const MemoryLine* line : judgement.find<MemoryLine>(files, "solo_graph"))
    if (line->when == "step") step = line;
  const MemoryLine* again = look(judgement, files, "solo_graph", "captured_again");
  if (!step || !again || !step->device || !again->device) return 0;
  return std::max<double>(0, static_cast<double>((*again->device - again->reserved) -
                                                 (*step->device - step->reserved)));
}

/// PyTorch's allocator keeps blocks of at most 1 MiB in segments of 2 MiB, and a segment goes back
/// when all of it is free. Packages keep small tensors in caches of their own, so the same live
/// bytes may lie in one segment more than before; on an H200 Megatron-Core did so once. It is no
/// graph if no more is allocated and no more is in private pools.
static double moved_small_blocks(const Attempt& attempt, const MemoryLine& before,
                                 const MemoryLine& after) {
  constexpr double kSmallSegmentBytes = 2.0 * 1024 * 1024;
  return attempt.axes.text("subject") != "reference" && after.allocated <= before.allocated &&
                 after.pool <= before.pool
             ? kSmallSegmentBytes
             : 0;
}

/// After arm solo_graph was dropped, and a flush collective and empty_cache have run, the
/// allocator's counts are at most what they were before the arm was built, and what the eager arm
/// left behind too. The driver's count is within the difference that the eager arm makes and what
/// the driver took for the second capture; it is not judged where other processes used the GPU.
record::CheckResult returned_after_flush(Judgement& judgement, const Attempt& attempt) {
  if (!judgement.has_replays()) return judgement.result("", "");
  const std::string foreign = foreign_memory(attempt);
  for (const RankFiles& files : attempt.ranks) {
    const MemoryLine* before = look(judgement, files, "solo_graph", "before");
    const MemoryLine* after = look(judgement, files, "solo_graph", "returned");
    const MemoryLine* eager_before = look(judgement, files, "solo_eager", "before");
    const MemoryLine* eager_after = look(judgement, files, "solo_eager", "returned");
    if (!before || !after || !eager_before || !eager_after) {
      judgement.absent<MemoryLine>(files,
                                   "of a solo arm before it was built and after it was dropped");
      continue;
    }
    if (!eager_before->device || !eager_after->device) {
      judgement.absent(
          files,
          "count of the device's bytes before arm solo_eager was built and after it was dropped");
      continue;
    }
    // The eager arm shows how much the driver's count changes without any graph, and how much a
    // library keeps of the last model that ran.
    const double spread = std::max(
        kDevicePageBytes, static_cast<double>(*eager_after->device - *eager_before->device));
    for (const Quantity& what : {kAllocated, kReserved, kDevice}) {
      const bool of_device = what.name == kDevice.name;
      if (of_device && !foreign.empty()) continue;
      const Bytes was = what.of(*before), is_now = what.of(*after);
      const Bytes eager_was = what.of(*eager_before), eager_now = what.of(*eager_after);
      const double kept =
          eager_was && eager_now ? std::max(0.0, static_cast<double>(*eager_now - *eager_was)) : 0;
      const double slack = of_device ? spread + kept_for_second_capture(judgement, files)
                           : what.name == kReserved.name
                               ? kept + moved_small_blocks(attempt, *before, *after)
                               : kept;
      if (was && is_now && static_cast<double>(*is_now - *was) <= slack) {
        judgement.confirm(files.rank);
        continue;
      }
      judgement.defect(
          {.rank = files.rank,
           .step = std::nullopt,
           .what =
               concat("`", what.name, "` memory was not returned when arm solo_graph was dropped"),
           .got = concat(shown(is_now), " bytes after a flush collective and empty_cache"),
           .want = concat(shown(was), " at most, as before it was built",
                          slack > 0 ? concat(", within ", slack) : std::string()),
           .why =
               "a graph or memory of it still exists, so the next model starts with less memory"});
    }
  }
  return judgement.result(
      concat("all of it on ", attempt.ranks.size(), " ranks",
             foreign.empty() ? "" : concat(", by the allocator's count alone: ", foreign)),
      "as before the arm was built");
}

}  // namespace graphproof::checks::d30

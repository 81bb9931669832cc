// D06: no step reads memory that has no owner. D05 reads the parameters of a graph's nodes, which
// contain neither the addresses in a table on the device nor workspaces that no tensor owns. For
// this check the ranks overwrite all free memory, so that a step which reads it has other results.
#include "suites/checks/attempt/comparison.h"
#include "suites/checks/attempt/concat.h"
#include "suites/checks/attempt/tolerance.h"

namespace graphproof::checks::d06 {

using record::ScribbledLine;

/// The last step of the lockstep arms is equal although all memory without an owner was filled with
/// NaN right before it. Unexercised if the arms differ in an earlier step.
record::CheckResult freed_memory(Judgement& judgement, const Attempt& attempt) {
  if (!judgement.has_replays()) return judgement.result("", "");
  const std::int64_t last = judgement.expected().last_inputs_step;
  std::int64_t least = 0;
  for (const RankFiles& files : attempt.ranks) {
    const auto* scribbled = judgement.first<ScribbledLine>(files, "lockstep_graph", last);
    const std::int64_t bytes = scribbled ? scribbled->bytes : 0;
    if (bytes <= 0) {
      judgement.absent<ScribbledLine>(files, "of more than 0 bytes", last);
      continue;
    }
    least = least == 0 ? bytes : std::min(least, bytes);
    const auto equal = [&](const CompareLine* line) { return agree(judgement, files, *line); };
    const auto before = comparisons(judgement, files, "lockstep"),
               after = comparisons(judgement, files, "capture_inputs_last");
    if (after.empty()) {
      judgement.absent(files, "comparison `capture_inputs_last`", last);
    } else if (!std::ranges::all_of(before, equal)) {
      judgement.unexercised(
          concat("on rank ", files.rank, " the arms differed before the memory was overwritten"));
      judgement.confirm(files.rank);  // the line is there; D01 reports the difference
    } else if (std::ranges::all_of(after, equal)) {
      judgement.confirm(files.rank);
    } else {
      judgement.defect(
          {.rank = files.rank,
           .step = last,
           .what = "lockstep_graph differs from lockstep_eager after freed memory was overwritten",
           .got = concat(before.size(), " comparisons equal before, step ", last, " not; ", bytes,
                         " bytes were filled with NaN in between"),
           .want = "what lockstep_eager has, byte for byte, whatever freed memory contains",
           .why = "a replay that reads freed memory is right only until that memory is reused"});
    }
  }
  return judgement.result(concat("equal after at least ", least, " freed bytes of each of ",
                                 attempt.ranks.size(), " ranks were overwritten"),
                          "equal");
}

}  // namespace graphproof::checks::d06

// D85: activations were offloaded. A step that keeps them on the device has the same results, so no
// comparison notices it.
#include <array>

#include "suites/checks/attempt/arms.h"
#include "suites/checks/attempt/concat.h"
#include "suites/checks/attempt/judgement.h"

namespace graphproof::checks::d85 {
namespace {

using record::OffloadLine;

void judge_step(Judgement& judgement, const RankFiles& files, const OffloadLine& line,
                std::int64_t activations, std::int64_t microbatches) {
  struct Count {
    std::int64_t got, want;
    const char *what, *why;
  };
  const std::array counts = {
      Count{line.buffers, activations,
            "has another number of host buffers than inputs of linear layers",
            "activations stay in device memory, or are kept twice"},
      Count{line.pinned, activations, "has host buffers in pageable memory",
            "copies to pageable memory make the host wait, and a graph cannot hold its address"},
      Count{line.written, activations, "did not write every host buffer",
            "the copies to the host are missing, so activations stay in device memory"},
      Count{line.fetched, activations * microbatches,
            "did not copy every activation back once for each microbatch",
            "the backward used something else than what the forward copied to the host"}};
  for (const Count& count : counts) {
    if (count.got == count.want) continue;
    judgement.defect(
        {.rank = files.rank,
         .step = line.step,
         .what = concat("step ", line.step, " of arm ", line.arm, " ", count.what),
         .got = concat(count.got),
         .want = concat(count.want, ", of ", activations, " inputs of linear layers and ",
                        microbatches, " microbatches"),
         .why = count.why});
    return;
  }
  judgement.confirm(files.rank);
}

}  // namespace

/// In every eager step and in every replay the device wrote a pinned host buffer for each linear
/// layer, and copied it back once for each microbatch.
record::CheckResult activation_offload(Judgement& judgement, const Attempt& attempt) {
  const Expected& expected = judgement.expected();
  const std::int64_t activations = offloaded_activations(attempt.axes);
  for (const RankFiles& files : attempt.ranks) {
    const auto judge = [&](std::string_view arm, std::int64_t first, std::int64_t last) {
      for (std::int64_t step = first; step <= last; ++step) {
        const auto* line = judgement.first<OffloadLine>(files, arm, step);
        if (line)
          judge_step(judgement, files, *line, activations, expected.microbatches);
        else
          judgement.absent<OffloadLine>(files, concat("of arm ", arm), step);
      }
    };
    judge("eager_a", 0, expected.steps - 1);
    const WatchedSteps replays(expected);
    if (expected.graph) judge(replays.arm, replays.first, replays.last);
  }
  return judgement.result(concat(activations, " activations offloaded in each microbatch on ",
                                 attempt.ranks.size(), " ranks"),
                          "every linear layer's input copied to the host and back");
}

}  // namespace graphproof::checks::d85

// D01: a replay computes what the eager step computes, on inputs that change.
#include "suites/checks/attempt/comparison.h"
#include "suites/checks/attempt/concat.h"
#include "suites/checks/attempt/tolerance.h"

namespace graphproof::checks::d01 {
namespace {

constexpr ArmPair kLockstep{"lockstep", "lockstep_eager", "lockstep_graph"};
constexpr ArmPair kCaptureInputsLast{"capture_inputs_last", "lockstep_eager", "lockstep_graph"};

/// With model collective, and below evidence revision 4, there is an eager arm that runs free.
ArmPair free_run_pair(const Attempt& attempt, const Expected& expected) {
  const bool free_eager = !expected.trains || evidence_revision(attempt) < 4;
  return {"free_run", free_eager ? "free_eager" : "eager_a", "free_graph"};
}

void judge_every_step(Judgement& judgement, const RankFiles& files) {
  const Expected& expected = judgement.expected();
  const auto lines = comparisons(judgement, files, kLockstep.compared);
  for (const CompareLine* line : lines) judge_comparison(judgement, files, *line, kLockstep);
  bool fresh = false;
  for (std::int64_t step = expected.first_replay; step < expected.steps; ++step) {
    bool compared = false;
    for (const CompareLine* line : lines) {
      if (line->step != step) continue;
      compared = true;
      fresh |= line->input == "fresh";
    }
    if (!compared) judgement.absent(files, "comparison `lockstep`", step);
  }
  if (!fresh && !lines.empty())
    judgement.absent(files, "comparison `lockstep` of a replay with fresh inputs");
}

}  // namespace

/// Every replayed step below `steps` has an equal comparison of more than zero tensors and bytes,
/// and at least one of these steps had fresh inputs. In every step both arms have equal digests and
/// a finite loss of each microbatch, because NaN equals nothing. Equal is byte for byte, or within
/// the tolerance that the case states (tolerance.h).
record::CheckResult lockstep(Judgement& judgement, const Attempt& attempt) {
  if (!judgement.has_replays()) return judgement.result("", "");
  for (const RankFiles& files : attempt.ranks) {
    judge_every_step(judgement, files);
    judge_steps(judgement, files, kLockstep, 0, judgement.expected().steps - 1);
  }
  const std::int64_t replays = judgement.expected().steps - judgement.expected().first_replay;
  return judgement.result(
      concat(replays, " of ", replays, " replayed steps equal on ", attempt.ranks.size(), " ranks",
             spread_summary(judgement, kLockstep.compared)),
      "all equal");
}

/// Step `steps`, whose inputs are those of the capture, is equal, and so are its digests. A defect
/// that depends on the captured values shows here.
record::CheckResult capture_inputs_last(Judgement& judgement, const Attempt& attempt) {
  if (!judgement.has_replays()) return judgement.result("", "");
  const std::int64_t last = judgement.expected().last_inputs_step;
  for (const RankFiles& files : attempt.ranks) {
    bool compared = false;
    for (const CompareLine* line : comparisons(judgement, files, kCaptureInputsLast.compared)) {
      judge_comparison(judgement, files, *line, kCaptureInputsLast);
      compared |= line->step == last && line->input == "capture";
    }
    if (!compared) judgement.absent(files, "comparison of the capture inputs", last);
    judge_steps(judgement, files, kCaptureInputsLast, last, last);
  }
  return judgement.result(concat("equal at step ", last, " on ", attempt.ranks.size(), " ranks",
                                 spread_summary(judgement, kCaptureInputsLast.compared)),
                          "equal");
}

/// The arms that run without host synchronisation are equal at their last step. The lockstep arms
/// cannot show races between replays, because the host waits after each of their steps.
record::CheckResult free_run(Judgement& judgement, const Attempt& attempt) {
  if (!judgement.has_replays()) return judgement.result("", "");
  for (const RankFiles& files : attempt.ranks)
    judge_final_comparison(judgement, files, free_run_pair(attempt, judgement.expected()),
                           judgement.expected().steps - 1);
  return judgement.result(concat("equal at the end on ", attempt.ranks.size(), " ranks",
                                 spread_summary(judgement, "free_run")),
                          "equal");
}

}  // namespace graphproof::checks::d01

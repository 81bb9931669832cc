// D47: evaluation between training steps computes the same as eager evaluation, and replays a graph
// of its own if the engine captures one.
#include <algorithm>
#include <iterator>

#include "suites/checks/attempt/comparison.h"
#include "suites/checks/attempt/concat.h"
#include "workloads/engine_traits/engine_traits.h"

namespace graphproof::checks::d47 {
namespace {

using record::AddressLine;
using record::EvaluatedLine;
using record::PoisonLine;

constexpr ArmPair kEvaluation{"evaluation", "lockstep_eager", "lockstep_graph"};
/// The first evidence revision in which all replays of evaluation are announced and inspected.
constexpr std::int64_t kAnnouncedSince = 5;
/// The first evidence revision that evaluates once more after the last new step of training.
constexpr std::int64_t kLaterSince = 14;
constexpr ArmPair kEvaluatedLater{"evaluation_later", "lockstep_eager", "lockstep_graph"};
constexpr ArmPair kEvaluatedAgain{"evaluation_repeats", "lockstep_graph", "lockstep_graph"};

/// An engine that captures evaluation does so once, after its warm-up; the others evaluate eagerly.
struct Evaluated {
  std::int64_t evaluations, captures, replays;
};
Evaluated evaluated(const Attempt& attempt, const Expected& expected) {
  const bool captured = engines::traits_of(attempt.axes.text("impl")).captures_evaluation;
  // The first batch again, and once more after the last new step of training.
  const std::int64_t evaluations =
      expected.evaluations + 1 + (evidence_revision(attempt) >= kLaterSince ? 1 : 0);
  return {evaluations, captured ? 1 : 0, captured ? evaluations - expected.warmup_steps : 0};
}

/// Demands the lines of the replays of evaluation: `address` and `poison`. A `poison` line names no
/// graph: each replayed training step has one, and the others are of evaluation.
void judge_inspected(Judgement& judgement, const RankFiles& files, const Evaluated& want) {
  const auto addresses = judgement.find<AddressLine>(files, "lockstep_graph");
  const auto inspected = std::ranges::count(addresses, "validation", &AddressLine::graph);
  const std::int64_t replayed_steps = std::ssize(judgement.expected().replayed_steps());
  const std::string of_each = concat("of each of ", want.replays, " replays of evaluation");
  if (inspected < want.replays) judgement.absent<AddressLine>(files, of_each);
  if (std::ssize(judgement.find<PoisonLine>(files, "lockstep_graph")) <
      replayed_steps + want.replays)
    judgement.absent<PoisonLine>(files, of_each);
}

void judge_counts(Judgement& judgement, const RankFiles& files, const Evaluated& want,
                  bool announced) {
  const EvaluatedLine* line = judgement.first<EvaluatedLine>(files);
  if (!line) return judgement.absent<EvaluatedLine>(files, "");
  if (line->evaluations == want.evaluations && line->captures == want.captures &&
      line->replays == want.replays) {
    if (announced && line->announced != want.replays)
      return judgement.defect(
          {.rank = files.rank,
           .step = line->step,
           .what = "replays of evaluation were not announced",
           .got = concat(shown(line->announced), " of ", want.replays, " announced"),
           .want = "all",
           .why = "moved inputs and unwritten outputs are noticed only in announced replays"});
    return judgement.confirm(files.rank);
  }
  const auto counts = [](std::int64_t evaluations, std::int64_t captures, std::int64_t replays) {
    return concat(evaluations, " evaluations, ", captures, " captures, ", replays, " replays");
  };
  judgement.defect({.rank = files.rank,
                    .step = line->step,
                    .what = "evaluation did not run from the expected graphs",
                    .got = counts(line->evaluations, line->captures, line->replays),
                    .want = counts(want.evaluations, want.captures, want.replays),
                    .why = "a training graph that is replayed in evaluation updates parameters or "
                           "applies dropout"});
}

}  // namespace

/// Every evaluation between two replayed steps equals eager evaluation, and a second evaluation of
/// the first batch has the same losses. So does one after the last step, when the parameters are
/// others than those with which the evaluation was captured. An engine that captures evaluation
/// replays one graph in all evaluations after its warm-up.
record::CheckResult evaluation(Judgement& judgement, const Attempt& attempt) {
  if (!judgement.has_replays()) return judgement.result("", "");
  const Expected& expected = judgement.expected();
  const Evaluated want = evaluated(attempt, expected);
  const bool announced = evidence_revision(attempt) >= kAnnouncedSince;
  for (const RankFiles& files : attempt.ranks) {
    // Evaluations change no state, so each one needs its own comparison.
    const auto compared = comparisons(judgement, files, kEvaluation.compared);
    for (std::int64_t number = 0; number < expected.evaluations; ++number)
      if (std::ranges::none_of(compared,
                               [&](const CompareLine* line) { return line->step == number; }))
        judgement.absent(files, "comparison `evaluation`", number);
    judge_final_comparison(judgement, files, kEvaluation, expected.evaluations - 1);
    judge_final_comparison(judgement, files, kEvaluatedAgain, expected.evaluations);
    if (evidence_revision(attempt) >= kLaterSince)
      judge_final_comparison(judgement, files, kEvaluatedLater, expected.evaluations + 1);
    judge_counts(judgement, files, want, announced);
    if (announced) judge_inspected(judgement, files, want);
  }
  return judgement.result(concat(want.evaluations, " evaluations equal on ", attempt.ranks.size(),
                                 " ranks, with ", want.replays, " replays"),
                          "the losses of eager evaluation, the same for the same batch");
}

}  // namespace graphproof::checks::d47

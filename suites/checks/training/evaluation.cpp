// D47: evaluation between training steps computes what eager evaluation does, with its own graph
// where the engine has one.
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
/// The first revision of evidence whose replays of evaluation are all watched.
constexpr std::int64_t kWatchedSince = 5;
constexpr ArmPair kEvaluatedAgain{"evaluation_repeats", "lockstep_graph", "lockstep_graph"};

/// An engine that captures evaluation does so once, after its warm-up; the others evaluate eagerly.
struct Evaluated {
  std::int64_t evaluations, captures, replays;
};
Evaluated evaluated(const Attempt& attempt, const Expected& expected) {
  const bool captured = engines::traits_of(attempt.axes.text("impl")).captures_evaluation;
  const std::int64_t evaluations = expected.evaluations + 1;  // the first batch again
  return {evaluations, captured ? 1 : 0, captured ? evaluations - expected.warmup_steps : 0};
}

/// Looks at the replays of evaluation: their addresses, and whether they wrote their outputs. A
/// look at outputs names no graph; what is more than one for each replayed step is theirs.
void judge_looks(Judgement& judgement, const RankFiles& files, const Evaluated& want) {
  const auto addresses = judgement.find<AddressLine>(files, "lockstep_graph");
  const auto looks = std::ranges::count(addresses, "validation", &AddressLine::graph);
  const std::int64_t replayed_steps = std::ssize(judgement.expected().replayed_steps());
  const std::string of_each = concat("of each of ", want.replays, " replays of evaluation");
  if (looks < want.replays) judgement.absent<AddressLine>(files, of_each);
  if (std::ssize(judgement.find<PoisonLine>(files, "lockstep_graph")) <
      replayed_steps + want.replays)
    judgement.absent<PoisonLine>(files, of_each);
}

void judge_counts(Judgement& judgement, const RankFiles& files, const Evaluated& want,
                  bool watched) {
  const EvaluatedLine* line = judgement.first<EvaluatedLine>(files);
  if (!line) return judgement.absent<EvaluatedLine>(files, "");
  if (line->evaluations == want.evaluations && line->captures == want.captures &&
      line->replays == want.replays) {
    if (watched && line->announced != want.replays)
      return judgement.defect(
          {.rank = files.rank,
           .step = line->step,
           .what = "replays of evaluation that nobody watched",
           .got = concat(shown(line->announced), " of ", want.replays, " watched"),
           .want = "all",
           .why = "what moved since the capture, or was not written, shows only where somebody "
                  "looks"});
    return judgement.confirm(files.rank);
  }
  const auto counts = [](std::int64_t evaluations, std::int64_t captures, std::int64_t replays) {
    return concat(evaluations, " evaluations, ", captures, " captures, ", replays, " replays");
  };
  judgement.defect(
      {.rank = files.rank,
       .step = line->step,
       .what = "evaluation did not run from the graphs that it should",
       .got = counts(line->evaluations, line->captures, line->replays),
       .want = counts(want.evaluations, want.captures, want.replays),
       .why = "a graph of training replayed in evaluation trains on, or keeps dropout"});
}

}  // namespace

/// Every evaluation between two replayed steps equals eager's, the first batch has the same losses
/// when it comes again, and full_iteration replays all but its warm-up from one graph of
/// evaluation.
record::CheckResult evaluation(Judgement& judgement, const Attempt& attempt) {
  if (!judgement.has_replays()) return judgement.result("", "");
  const Expected& expected = judgement.expected();
  const Evaluated want = evaluated(attempt, expected);
  const bool watched = evidence_revision(attempt) >= kWatchedSince;
  for (const RankFiles& files : attempt.ranks) {
    // One evaluation says nothing of another: they leave nothing behind.
    const auto compared = comparisons(judgement, files, kEvaluation.compared);
    for (std::int64_t number = 0; number < expected.evaluations; ++number)
      if (std::ranges::none_of(compared,
                               [&](const CompareLine* line) { return line->step == number; }))
        judgement.absent(files, "comparison `evaluation`", number);
    judge_final_comparison(judgement, files, kEvaluation, expected.evaluations - 1);
    judge_final_comparison(judgement, files, kEvaluatedAgain, expected.evaluations);
    judge_counts(judgement, files, want, watched);
    if (watched) judge_looks(judgement, files, want);
  }
  return judgement.result(concat(want.evaluations, " evaluations equal on ", attempt.ranks.size(),
                                 " ranks, with ", want.replays, " replays"),
                          "the losses of eager evaluation, the same for the same batch");
}

}  // namespace graphproof::checks::d47

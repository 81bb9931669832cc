// D47: a job that goes on from a checkpoint, in a fresh model and under live graphs, leaves what
// the job that saved it left.
#include <array>

#include "suites/checks/attempt/comparison.h"
#include "suites/checks/attempt/concat.h"
#include "suites/checks/attempt/detectors.h"

namespace graphproof::checks {
namespace {

using record::ResumedLine;

constexpr std::array kPairs{ArmPair{"resumed", "lockstep_graph", "resumed"},
                            ArmPair{"loaded", "lockstep_graph", "loaded"}};

/// Steps that each of the two runs, and how many launches both need: the first one warms up before
/// it captures.
struct Resumed {
  std::int64_t first_step, replays;
};
Resumed resumed(const Expected& expected) {
  const std::int64_t first = expected.steps - expected.first_replay - 1;
  return {first,
          expected.launches_per_step * (2 * (expected.steps - first) - expected.first_replay)};
}

void judge_replays(Judgement& judgement, const RankFiles& files, const Resumed& want) {
  const ResumedLine* line = judgement.first<ResumedLine>(files);
  if (!line) return judgement.absent<ResumedLine>(files, "", want.first_step);
  if (line->step == want.first_step && line->replays == want.replays)
    return judgement.saw(files.rank);
  judgement.defect(
      {.rank = files.rank,
       .step = line->step,
       .what = "the resumed job did not replay every step after its warm-up",
       .got = concat(line->replays, " replays from step ", line->step, " on"),
       .want = concat(want.replays, " from step ", want.first_step, " on"),
       .why = "steps that ran eagerly make the numbers agree and prove nothing about the graph"});
}

}  // namespace

record::CheckResult resume(const Attempt& attempt) {
  Judgement judgement("D47.resume", attempt);
  if (judgement.for_training_cases() && judgement.for_graph_cases() &&
      attempt.axes.text("schedule") != "resume")
    judgement.not_applicable("the case saves no checkpoint");
  if (judgement.settled()) return judgement.result("", "");
  const Resumed want = resumed(judgement.expected());
  for (const RankFiles& files : attempt.ranks) {
    for (const ArmPair& pair : kPairs)
      judge_final_comparison(judgement, files, pair, judgement.expected().steps - 1);
    judge_replays(judgement, files, want);
  }
  return judgement.result(
      concat("steps from ", want.first_step, " on equal on ", attempt.ranks.size(), " ranks, with ",
             want.replays, " replays"),
      "what the job left that saved the checkpoint, in a fresh model and under live graphs");
}

}  // namespace graphproof::checks

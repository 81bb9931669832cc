// D47: a job that resumes from a checkpoint ends with the same results as the job that saved it, in
// a new model and in one whose graphs exist already.
#include <array>

#include "suites/checks/attempt/comparison.h"
#include "suites/checks/attempt/concat.h"

namespace graphproof::checks::d47 {
namespace {

using record::ResumedLine;

constexpr std::array kPairs{ArmPair{"resumed", "lockstep_graph", "resumed"},
                            ArmPair{"loaded", "lockstep_graph", "loaded"}};

/// What the two resumed runs do: their first step, and the graph launches of both together. Only
/// the run in a new model warms up and captures.
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
    return judgement.confirm(files.rank);
  judgement.defect(
      {.rank = files.rank,
       .step = line->step,
       .what = "the resumed job did not replay every step after its warm-up",
       .got = concat(line->replays, " replays from step ", line->step, " on"),
       .want = concat(want.replays, " from step ", want.first_step, " on"),
       .why = "steps that ran eagerly agree in their numbers and prove nothing about the graph"});
}

}  // namespace

/// A job that resumes from a checkpoint ends with the same results as the job that saved it: in a
/// new model, and then again in that model with its graphs. Both runs replay every step after the
/// warm-up.
record::CheckResult resume(Judgement& judgement, const Attempt& attempt) {
  if (!judgement.has_replays()) return judgement.result("", "");
  const Resumed want = resumed(judgement.expected());
  for (const RankFiles& files : attempt.ranks) {
    for (const ArmPair& pair : kPairs)
      judge_final_comparison(judgement, files, pair, judgement.expected().steps - 1);
    judge_replays(judgement, files, resumed(judgement.expected_of(files)));
  }
  return judgement.result(
      concat("steps from ", want.first_step, " on equal on ", attempt.ranks.size(), " ranks, with ",
             want.replays, " replays"),
      "the results of the job that saved the checkpoint, in a new model and with its graphs");
}

}  // namespace graphproof::checks::d47

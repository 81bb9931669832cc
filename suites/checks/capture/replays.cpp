// D43: every step that should have been a replay was one. Launches are counted where they happen,
// so that an engine which falls back to eager without notice is found although its results are
// right.
#include <algorithm>

#include "suites/checks/attempt/arms.h"
#include "suites/checks/attempt/concat.h"
#include "suites/checks/attempt/judgement.h"
#include "suites/checks/attempt/launches.h"

namespace graphproof::checks::d43 {
namespace {

using record::ReplayLine;

void judge_line(Judgement& judgement, const RankFiles& files, const Expected& expected,
                const ReplayLine& line) {
  const std::int64_t want = expected.replays_until(line.step);
  if (line.replays == want && line.fallbacks == 0 && line.recaptures == 0) {
    judgement.confirm(files.rank);
    return;
  }
  judgement.defect(
      {.rank = files.rank,
       .step = line.step,
       .what = concat("arm ", line.arm, " did not replay every step up to step ", line.step),
       .got = concat(line.replays, " replays, ", line.fallbacks, " fallbacks, ", line.recaptures,
                     " recaptures"),
       .want = concat(want, " replays after ", expected.warmup_steps,
                      " warm-up steps, 0 fallbacks, 0 recaptures"),
       .why = "a step that ran eagerly has right results and proves nothing about the graph"});
}

}  // namespace

/// Every graph arm has as many replays as steps after the warm-up, no fallback and no new capture.
/// Where the compiler decides how many graphs a step has, all steps have as many as the first.
record::CheckResult replays(Judgement& judgement, const Attempt& attempt) {
  if (!judgement.has_replays()) return judgement.result("", "");
  Expected expected = judgement.expected();
  for (const RankFiles& files : attempt.ranks) {
    expected = expected_launches(judgement, files);
    for (const auto& [arm, step] : watched_replays(attempt, expected))
      if (!judgement.first<ReplayLine>(files, arm, step))
        judgement.absent<ReplayLine>(files, concat("of arm ", arm), step);
    for (const char* arm : graph_arms(attempt)) {
      const auto lines = judgement.find<ReplayLine>(files, arm);
      for (const ReplayLine* line : lines) judge_line(judgement, files, expected, *line);
      // Without the count of the last step, an arm could have stopped replaying unnoticed.
      if (std::ranges::none_of(
              lines, [&](const ReplayLine* line) { return line->step >= expected.steps - 1; }))
        judgement.absent<ReplayLine>(files, concat("of arm ", arm), expected.steps - 1);
    }
  }
  return judgement.result(
      concat(expected.replays_until(expected.last_inputs_step), " replays in lockstep on ",
             attempt.ranks.size(), " ranks, no fallback"),
      "a replay of every step after the warm-up");
}

}  // namespace graphproof::checks::d43

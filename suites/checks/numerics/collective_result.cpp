// D53 for the single collective: its result is what one rank computes alone from the inputs of all
// ranks. Without this, two arms with the same wrong result would pass.
#include <set>

#include "suites/checks/attempt/comparison.h"
#include "suites/checks/attempt/concat.h"

namespace graphproof::checks::d53 {
namespace {

constexpr std::string_view kClosedForm = "closed_form";

/// Demands an equal comparison of each step from `first` to `last`.
void judge_arm(Judgement& judgement, const RankFiles& files, std::string_view arm,
               std::int64_t first, std::int64_t last) {
  std::set<std::int64_t> compared;
  for (const CompareLine* line : comparisons(judgement, files, kClosedForm)) {
    if (line->right != arm) continue;
    judge_comparison(judgement, files, *line, {kClosedForm, kClosedForm, arm});
    compared.insert(line->step);
  }
  for (std::int64_t step = first; step <= last; ++step)
    if (!compared.contains(step))
      judgement.absent(files, concat("comparison of arm ", arm, " with the closed form"), step);
}

}  // namespace

/// Every result of the eager arms equals the closed form.
record::CheckResult eager_collective(Judgement& judgement, const Attempt& attempt) {
  const std::int64_t last = judgement.expected().steps - 1;
  for (const RankFiles& files : attempt.ranks) {
    for (const char* arm : {"eager_a", "eager_b"}) judge_arm(judgement, files, arm, 0, last);
    if (!judgement.expected().graph) continue;
    // These arms run next to graph arms, so a hang of those leaves them unfinished. eager_a and
    // eager_b have shown by then that the collective is right.
    const bool finished = stopped_because(files).empty();
    judge_arm(judgement, files, "lockstep_eager", 0,
              finished ? judgement.expected().last_inputs_step : -1);
    judge_arm(judgement, files, "free_eager", last, finished ? last : -1);
  }
  return judgement.result(
      concat(last + 1, " steps equal in both eager arms on ", attempt.ranks.size(), " ranks"),
      "all equal");
}

/// Every result of the graph arms equals the closed form.
record::CheckResult replayed_collective(Judgement& judgement, const Attempt& attempt) {
  if (!judgement.has_replays()) return judgement.result("", "");
  const std::int64_t last = judgement.expected().steps - 1;
  for (const RankFiles& files : attempt.ranks) {
    judge_arm(judgement, files, "lockstep_graph", 0, judgement.expected().last_inputs_step);
    judge_arm(judgement, files, "graph_b", 0, last);
    judge_arm(judgement, files, "free_graph", last, last);
  }
  return judgement.result(
      concat("every replay equal in three arms on ", attempt.ranks.size(), " ranks"), "all equal");
}

}  // namespace graphproof::checks::d53

// D13: results do not depend on timing. In a short run a missing order rarely shows, so the ranks
// delay work on purpose, by milliseconds: that of one stream or of all others, and within a graph
// that of one branch after each fork.
#include <algorithm>

#include "suites/checks/attempt/comparison.h"
#include "suites/checks/attempt/concat.h"
#include "suites/checks/attempt/tolerance.h"

namespace graphproof::checks::d13 {
namespace {

using record::DelayedStepsLine;

/// An arm with delayed steps.
struct DelayedArm {
  std::string_view arm;
  std::string_view compared;    // the comparison of its results
  std::string_view difference;  // the message if they differ
  std::int64_t first, steps;    // its delayed steps: from which on, and how many
};

bool settled(Judgement& judgement, const Attempt& attempt) {
  if (!judgement.settled() && attempt.context.device != "cuda")
    judgement.not_applicable(
        "the simulated device runs everything in program order; D56 judges there what is ordered");
  return judgement.settled();
}

/// `differed_without_delay`: whether results of the rank differ even where nothing is delayed.
/// Something else than an order is wrong then.
template <typename DifferedWithoutDelay>
record::CheckResult judge_delayed(Judgement& judgement, const Attempt& attempt,
                                  const DelayedArm& delayed_arm,
                                  DifferedWithoutDelay differed_without_delay) {
  for (const RankFiles& files : attempt.ranks) {
    const DelayedStepsLine* line = judgement.first<DelayedStepsLine>(files, delayed_arm.arm);
    const bool delayed = line != nullptr && line->streams > 0;
    bool as_planned = delayed && std::ssize(line->steps) == delayed_arm.steps;
    for (std::int64_t i = 0; as_planned && i < delayed_arm.steps; ++i)
      as_planned = line->steps[static_cast<std::size_t>(i)] == delayed_arm.first + i;
    if (!as_planned) {
      judgement.absent<DelayedStepsLine>(
          files,
          concat("of arm ", delayed_arm.arm, " with ", delayed_arm.steps, " steps from step ",
                 delayed_arm.first, " on"),
          delayed_arm.first);
      continue;
    }
    const std::vector<const CompareLine*> compared =
        comparisons(judgement, files, delayed_arm.compared);
    const std::int64_t last = judgement.expected().steps - 1;
    if (std::ranges::none_of(compared, [&](const CompareLine* one) { return one->step == last; })) {
      judgement.absent(files, concat("comparison `", delayed_arm.compared, "`"), last);
    } else if (differed_without_delay(files)) {
      judgement.unexercised(concat("on rank ", files.rank, " the results of ", delayed_arm.arm,
                                   " differed even without a delay"));
      judgement.confirm(files.rank);  // the line is there; D01 and D02 report the difference
    } else if (std::ranges::all_of(compared, [&](const CompareLine* one) {
                 return agree(judgement, files, *one);
               })) {
      judgement.confirm(files.rank);
    } else {
      judgement.defect(
          {.rank = files.rank,
           .step = delayed_arm.first,
           .what = std::string(delayed_arm.difference),
           .got = concat("other bytes when the arm's stream or the ", line->streams,
                         " others were delayed by ", shown(line->ms), " ms, and ", line->branches,
                         " branches within graphs; the same bytes without a delay"),
           .want = "the same bytes, whichever work is delayed",
           .why = "some work does not wait for what it needs, and was right by chance so far"});
    }
  }
  return judgement.result(concat("equal on ", attempt.ranks.size(), " ranks although ",
                                 delayed_arm.steps, " steps were delayed"),
                          "equal");
}

}  // namespace

/// On GPUs: every comparison of eager_a with solo_eager is equal although two steps of eager_a were
/// delayed. Unexercised if the two differ before these steps.
record::CheckResult late_eager(Judgement& judgement, const Attempt& attempt) {
  if (settled(judgement, attempt)) return judgement.result("", "");
  const DelayedArm arm{"eager_a", "eager_repeats",
                       "eager_a, of which some steps were delayed, differs from solo_eager", 1,
                       std::min<std::int64_t>(2, judgement.expected().steps - 1)};
  return judge_delayed(judgement, attempt, arm, [&](const RankFiles& files) {
    return std::ranges::any_of(comparisons(judgement, files, arm.compared),
                               [&](const CompareLine* line) {
                                 return line->step < arm.first && !agree(judgement, files, *line);
                               });
  });
}

/// On GPUs: the end of free_graph is equal although all its replays, and branches within its
/// graphs, were delayed. Unexercised if the lockstep arms, in which nothing is delayed, differ.
record::CheckResult late_replays(Judgement& judgement, const Attempt& attempt) {
  if (settled(judgement, attempt) || !judgement.has_replays()) return judgement.result("", "");
  const Expected& plan = judgement.expected();
  const DelayedArm arm{"free_graph", "free_run",
                       "free_graph, whose replays were delayed, differs from eager_a",
                       plan.first_replay, plan.steps - plan.first_replay};
  return judge_delayed(judgement, attempt, arm, [&](const RankFiles& files) {
    return !std::ranges::all_of(
        comparisons(judgement, files, "lockstep"),
        [&](const CompareLine* line) { return agree(judgement, files, *line); });
  });
}

}  // namespace graphproof::checks::d13

// D13: results do not depend on timing. GPUs rarely lose a race in a short run. Here the work of
// one stream, or of all others, begins milliseconds late, and within a graph one of the branches
// from each fork.
#include <algorithm>

#include "suites/checks/attempt/comparison.h"
#include "suites/checks/attempt/concat.h"

namespace graphproof::checks::d13 {
namespace {

using record::DelayedStepsLine;

/// An arm with late steps, what its results are compared in, and which of its steps are late.
struct LateArm {
  std::string_view arm, subject, what;
  std::int64_t first, steps;
};

bool equal(const CompareLine* line) { return line->equal; }

bool settled(Judgement& judgement, const Attempt& attempt) {
  if (!judgement.settled() && attempt.context.device != "cuda")
    judgement.not_applicable(
        "the simulated device runs everything in program order, and D56 asks what is ordered");
  return judgement.settled();
}

/// `differed_before`: whether the rank's results differed where nothing was late, so that something
/// else than an order is wrong.
template <typename DifferedBefore>
record::CheckResult judge_late(Judgement& judgement, const Attempt& attempt, const LateArm& late,
                               DifferedBefore differed_before) {
  for (const RankFiles& files : attempt.ranks) {
    const DelayedStepsLine* line = judgement.first<DelayedStepsLine>(files, late.arm);
    const bool delayed = line != nullptr && line->streams > 0;
    bool as_planned = delayed && std::ssize(line->steps) == late.steps;
    for (std::int64_t i = 0; as_planned && i < late.steps; ++i)
      as_planned = line->steps[static_cast<std::size_t>(i)] == late.first + i;
    if (!as_planned) {
      judgement.absent<DelayedStepsLine>(
          files,
          concat("of arm ", late.arm, " with ", late.steps, " steps from step ", late.first, " on"),
          late.first);
      continue;
    }
    const std::vector<const CompareLine*> compared = comparisons(judgement, files, late.subject);
    const std::int64_t last = judgement.expected().steps - 1;
    if (std::ranges::none_of(compared, [&](const CompareLine* one) { return one->step == last; })) {
      judgement.absent(files, concat("comparison `", late.subject, "`"), last);
    } else if (differed_before(files)) {
      judgement.unexercised(concat("on rank ", files.rank, " the results of ", late.arm,
                                   " differed where nothing was late"));
      judgement.confirm(files.rank);  // the line is there; D01 and D02 say what differed
    } else if (std::ranges::all_of(compared, equal)) {
      judgement.confirm(files.rank);
    } else {
      judgement.defect(
          {.rank = files.rank,
           .step = late.first,
           .what = std::string(late.what),
           .got = concat("other bytes with the own stream, or the ", line->streams, " others, ",
                         shown(line->ms), " ms late, and with ", line->branches,
                         " ways within graphs; the same bytes where nothing was late"),
           .want = "the same bytes, whatever comes late",
           .why = "something does not wait for what it needs, and was lucky so far"});
    }
  }
  return judgement.result(
      concat("equal on ", attempt.ranks.size(), " ranks although ", late.steps, " steps were late"),
      "equal");
}

}  // namespace

/// On GPUs: every comparison of eager_a with solo_eager is equal although two steps of eager_a
/// were delayed. Unexercised where the two differ before these steps.
record::CheckResult late_eager(Judgement& judgement, const Attempt& attempt) {
  if (settled(judgement, attempt)) return judgement.result("", "");
  const LateArm late{"eager_a", "eager_repeats",
                     "eager_a, of which some steps were late, differs from solo_eager", 1,
                     std::min<std::int64_t>(2, judgement.expected().steps - 1)};
  return judge_late(judgement, attempt, late, [&](const RankFiles& files) {
    return std::ranges::any_of(
        comparisons(judgement, files, late.subject),
        [&](const CompareLine* line) { return line->step < late.first && !equal(line); });
  });
}

/// On GPUs: free_graph ends equal although all its replays, and branches within its graphs, were
/// delayed. Unexercised where the lockstep arms, in which nothing is delayed, differ.
record::CheckResult late_replays(Judgement& judgement, const Attempt& attempt) {
  if (settled(judgement, attempt) || !judgement.has_replays()) return judgement.result("", "");
  const Expected& plan = judgement.expected();
  const LateArm late{"free_graph", "free_run",
                     "free_graph, whose replays were late, differs from eager_a", plan.first_replay,
                     plan.steps - plan.first_replay};
  return judge_late(judgement, attempt, late, [&](const RankFiles& files) {
    return !std::ranges::all_of(comparisons(judgement, files, "lockstep"), equal);
  });
}

}  // namespace graphproof::checks::d13

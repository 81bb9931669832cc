// D76: a paged stash loses no token: a step whose rows found no room runs again, and buffers grow.
#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "suites/checks/attempt/comparison.h"
#include "suites/checks/attempt/concat.h"

namespace graphproof::checks::d76 {
namespace {

using record::StashLine;

constexpr ArmPair kInLockstep{"stash", "stash_eager", "stash_graph"};

/// What is wrong with a step: `what` is empty if nothing is.
struct Finding {
  std::string what, got, want, why;
};

/// `needed`: rows of the rank that needed most.
Finding finding_of(const StashLine& line, std::int64_t needed) {
  const std::int64_t wanted = needed > line.capacity ? 1 : 0;
  if (line.reruns < wanted)
    return {"did not run again", concat(line.reruns, " more runs"), "1 more run",
            concat("a rank needed ", needed, " rows and had ", line.capacity,
                   ", so tokens had no expert")};
  if (line.reruns > wanted)
    return {"ran again without need", concat(line.reruns, " more runs"),
            concat(wanted, " more runs"),
            concat("a rank needed ", needed, " rows at most and had ", line.capacity,
                   ", and every rerun costs an eager step")};
  if (line.assigned == 0 || line.carried != line.assigned || line.dropped != 0)
    return {"lost tokens",
            concat(line.carried, " carried and ", line.dropped, " dropped of ", line.assigned,
                   " assignments"),
            "all carried", "a paged stash is dropless"};
  if (wanted == 1 ? line.grown < needed : line.grown != line.capacity)
    return {wanted == 1 ? "did not grow its buffers" : "changed its buffers without need",
            concat(line.grown, " rows after ", line.capacity),
            wanted == 1 ? concat(needed, " rows or more") : concat(line.capacity, " rows"),
            "every step with as many rows would run twice"};
  return {};
}

}  // namespace

/// In both arms a step ran a second time exactly if a rank lacked room, the last run carried every
/// assignment, and the buffers then held what it had needed, also in the next step. After the
/// warm-up the graph arm replayed every step, and captured again exactly after its buffers had
/// grown. All steps equal eager. Unexercised if no replay overflowed or no later one had as many
/// rows.
record::CheckResult paged_stash(Judgement& judgement, const Attempt& attempt) {
  if (!judgement.has_replays()) return judgement.result("", "");
  const std::int64_t first = judgement.expected().warmup_steps, steps = first + 5;
  std::map<std::pair<std::string, std::int64_t>, std::int64_t> needed;  // by arm and step
  for (const RankFiles& files : attempt.ranks)
    for (const StashLine& line : judgement.lines<StashLine>(files)) {
      std::int64_t& most = needed[{line.arm, line.step}];
      most = std::max(most, line.needed);
    }
  for (const RankFiles& files : attempt.ranks) {
    judge_final_comparison(judgement, files, kInLockstep, steps - 1);
    bool overflowed = false, held = false;
    for (const std::string_view arm : {kInLockstep.left, kInLockstep.right}) {
      const StashLine* before = nullptr;
      for (std::int64_t step = 0; step < steps; ++step) {
        const StashLine* line = judgement.first<StashLine>(files, arm, step);
        if (!line) {
          judgement.absent<StashLine>(files, concat("of arm ", arm), step);
          break;
        }
        Finding found = finding_of(*line, needed[{line->arm, step}]);
        if (found.what.empty() && before && line->capacity != before->grown)
          found = {"began with other buffers than the step before left",
                   concat(line->capacity, " rows"), concat(before->grown, " rows"),
                   "a graph holds the size of its capture"};
        if (found.what.empty() && arm == kInLockstep.right && step >= first) {
          const bool captures = !before || step == first || before->reruns > 0;
          const std::int64_t captured = line->captures - (before ? before->captures : 0),
                             replayed = line->replays - (before ? before->replays : 0);
          if ((captured > 0) != captures || replayed == 0)
            found = {"was not replayed as it should be",
                     concat(captured, " captures and ", replayed, " replays"),
                     captures ? "a capture and a replay" : "a replay without a capture",
                     "eager steps would be compared with eager steps"};
          held |= overflowed && line->pulled && line->reruns == 0;
          overflowed |= line->pulled && line->reruns > 0;
        }
        if (!found.what.empty())
          judgement.defect({.rank = files.rank,
                            .step = step,
                            .what = concat("step ", step, " of arm ", arm, " ", found.what),
                            .got = std::move(found.got),
                            .want = std::move(found.want),
                            .why = std::move(found.why)});
        before = line;
      }
    }
    if (overflowed && held)
      judgement.confirm(files.rank);
    else
      judgement.unexercised(concat("on rank ", files.rank,
                                   overflowed ? " no replay had as many rows as the one that "
                                                "overflowed"
                                              : " no replay overflowed"));
  }
  return judgement.result(concat("no token lost in ", steps, " steps on ", attempt.ranks.size(),
                                 " ranks, one of which overflowed a replay"),
                          "one more run of a step that lacks room, larger buffers after it, and "
                          "eager's bytes");
}

}  // namespace graphproof::checks::d76

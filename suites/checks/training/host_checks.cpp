// D43: what the host does beside replays is done in every step: its NaN checks, and beginning the
// reduction of gradients.
#include <array>
#include <cmath>

#include "suites/checks/attempt/concat.h"
#include "suites/checks/attempt/detectors.h"
#include "suites/checks/attempt/judgement.h"

namespace graphproof::checks {
namespace {

/// The steps whose host work is asked for: of the lockstep arm's replays, or of eager_a.
struct Watched {
  explicit Watched(const Expected& expected)
      : arm(expected.graph ? "lockstep_graph" : "eager_a"),
        first(expected.graph ? expected.first_replay : 0),
        last(expected.graph ? expected.last_inputs_step : expected.steps - 1) {}
  std::int64_t steps() const { return last - first + 1; }
  std::string_view arm;
  std::int64_t first, last;
};

using record::HyperparameterLine;

/// The line of `name` of a step; null if there is none.
const HyperparameterLine* line_of(Judgement& judgement, const RankFiles& files,
                                  std::string_view arm, std::int64_t step, std::string_view name) {
  for (const auto* line : judgement.find<HyperparameterLine>(files, arm, step))
    if (line->name == name) return line;
  return nullptr;
}

/// What the host looks at, under which name it is counted, and for which axis.
struct Looks {
  std::string_view axis, name, called;
};
constexpr std::array kLooks = {Looks{"nan_check_loss", "losses_checked", "losses"},
                               Looks{"nan_check_grad", "gradients_checked", "gradients"}};

void judge_step(Judgement& judgement, const RankFiles& files, const Looks& looks,
                std::string_view arm, std::int64_t step, bool has_them) {
  const HyperparameterLine* line = line_of(judgement, files, arm, step, looks.name);
  if (!line)
    return judgement.absent<HyperparameterLine>(files, concat("of ", looks.name, " in arm ", arm),
                                                step);
  if (std::isfinite(line->host) && (line->host > 0) == has_them && line->effective == line->host)
    return judgement.saw(files.rank);
  judgement.defect({.rank = files.rank,
                    .step = step,
                    .what = concat("the host did not look at all ", looks.called, " of arm ", arm,
                                   " at step ", step),
                    .got = concat(line->effective, " looks"),
                    .want = has_them ? concat(line->host, ", more than none")
                                     : "none, on a stage without a loss",
                    .why = "a check that is left out beside replays lets NaN spread unseen"});
}

}  // namespace

record::CheckResult host_checks(const Attempt& attempt) {
  Judgement judgement("D43.host_checks", attempt);
  if (judgement.for_training_cases() && !attempt.axes.flag("nan_check_loss") &&
      !attempt.axes.flag("nan_check_grad"))
    judgement.not_applicable("the case asks for no check on the host");
  if (judgement.settled()) return judgement.result("", "");
  const Watched watched(judgement.expected());
  const std::vector<int> last_stage = roles(attempt.axes, attempt.context.world_size).back();
  for (const RankFiles& files : attempt.ranks)
    for (std::int64_t step = watched.first; step <= watched.last; ++step)
      for (const Looks& looks : kLooks)
        if (attempt.axes.flag(looks.axis))
          judge_step(judgement, files, looks, watched.arm, step,
                     looks.called == "gradients" || files.rank >= last_stage.front());
  return judgement.result(
      concat("looked in ", watched.steps(), " steps on ", attempt.ranks.size(), " ranks"),
      "every loss and gradient that the case asks for");
}

record::CheckResult overlapped_reduction(const Attempt& attempt) {
  Judgement judgement("D43.overlapped_reduction", attempt);
  if (judgement.for_training_cases() && !attempt.axes.flag("overlap_grad_reduce"))
    judgement.not_applicable("gradients are reduced behind the step");
  if (!judgement.settled() && attempt.axes.text("comm") == "c10d" &&
      !attempt.axes.flag("distributed_optimizer"))
    judgement.not_applicable("PyTorch's reducer does not say when it begins");
  if (judgement.settled()) return judgement.result("", "");
  const Watched watched(judgement.expected());
  for (const RankFiles& files : attempt.ranks)
    for (std::int64_t step = watched.first; step <= watched.last; ++step) {
      const auto* line = line_of(judgement, files, watched.arm, step, "buckets_overlapped");
      if (!line) {
        judgement.absent<HyperparameterLine>(
            files, concat("of buckets_overlapped in arm ", watched.arm), step);
        continue;
      }
      if (std::isfinite(line->host) && line->host > 0 && line->effective == line->host) {
        judgement.saw(files.rank);
        continue;
      }
      judgement.defect(
          {.rank = files.rank,
           .step = step,
           .what = concat(
               "arm ", watched.arm,
               " began to reduce too few buckets of gradients under the backward of step ", step),
           .got = concat(line->effective, " of ", line->host, " buckets"),
           .want = "all, more than none",
           .why = "hooks that a replay does not call leave their buckets for the end of the step, "
                  "where nothing hides the time"});
    }
  return judgement.result(
      concat("all buckets in ", watched.steps(), " steps on ", attempt.ranks.size(), " ranks"),
      "all buckets");
}

}  // namespace graphproof::checks

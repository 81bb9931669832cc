// D43: what the host does beside replays is done in every step: its NaN checks, and beginning the
// reduction of gradients.
#include <array>

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

/// What a `knob` line counts, and for which axis.
struct Looks {
  std::string_view axis, knob, called;
};
constexpr std::array kLooks = {Looks{"nan_check_loss", "losses_checked", "losses"},
                               Looks{"nan_check_grad", "gradients_checked", "gradients"}};

void judge_step(Judgement& judgement, const RankFiles& files, const Looks& looks,
                std::string_view arm, std::int64_t step, bool has_them) {
  for (const Line* line : files.find("knob", arm, step)) {
    if (!is(*line, "knob", looks.knob)) continue;
    const auto want = number(*line, "host"), got = number(*line, "effective");
    if (want && got && (*want > 0) == has_them && *got == *want) return judgement.saw(files.rank);
    return judgement.defect(
        {.rank = files.rank,
         .step = step,
         .what = concat("the host did not look at all ", looks.called, " of arm ", arm, " at step ",
                        step),
         .got = concat(field(*line, "effective").dump(), " looks"),
         .want = has_them ? concat(field(*line, "host").dump(), ", more than none")
                          : "none, on a stage without a loss",
         .why = "a check that is left out beside replays lets NaN spread unseen"});
  }
  judgement.absent(files, concat("`knob` line of ", looks.knob, " in arm ", arm), step);
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
      const auto lines = files.find("knob", watched.arm, step);
      const auto line = std::ranges::find_if(
          lines, [](const Line* one) { return is(*one, "knob", "buckets_overlapped"); });
      if (line == lines.end()) {
        judgement.absent(files, concat("`knob` line of buckets_overlapped in arm ", watched.arm),
                         step);
        continue;
      }
      const auto buckets = number(**line, "host"), begun = number(**line, "effective");
      if (buckets && begun && *buckets > 0 && *begun == *buckets) {
        judgement.saw(files.rank);
        continue;
      }
      judgement.defect(
          {.rank = files.rank,
           .step = step,
           .what = concat(
               "arm ", watched.arm,
               " began to reduce too few buckets of gradients under the backward of step ", step),
           .got = concat(field(**line, "effective").dump(), " of ", field(**line, "host").dump(),
                         " buckets"),
           .want = "all, more than none",
           .why = "hooks that a replay does not call leave their buckets for the end of the step, "
                  "where nothing hides the time"});
    }
  return judgement.result(
      concat("all buckets in ", watched.steps(), " steps on ", attempt.ranks.size(), " ranks"),
      "all buckets");
}

}  // namespace graphproof::checks

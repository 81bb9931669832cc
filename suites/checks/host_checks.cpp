// D43: what the host does beside replays is done in every step: its NaN checks.
#include <array>

#include "suites/checks/detectors.h"
#include "suites/checks/judgement.h"
#include "suites/checks/say.h"

namespace graphproof::checks {
namespace {

/// What a `knob` line counts, and for which axis.
struct Looks {
  std::string_view axis, knob, called;
};
constexpr std::array kLooks = {Looks{"nan_check_loss", "losses_checked", "losses"},
                               Looks{"nan_check_grad", "gradients_checked", "gradients"}};

void judge_step(Judgement& judgement, const RankFiles& files, const Looks& looks, std::string_view arm, std::int64_t step,
                bool has_them) {
  for (const Line* line : files.find("knob", arm, step)) {
    if (!is(*line, "knob", looks.knob)) continue;
    const auto want = number(*line, "host"), got = number(*line, "effective");
    if (want && got && (*want > 0) == has_them && *got == *want) return judgement.saw(files.rank);
    return judgement.defect({.rank = files.rank,
                             .step = step,
                             .what = say("the host did not look at all ", looks.called, " of arm ", arm, " at step ", step),
                             .got = say(field(*line, "effective").dump(), " looks"),
                             .want = has_them ? say(field(*line, "host").dump(), ", more than none") : "none, on a stage without a loss",
                             .why = "a check that is left out beside replays lets NaN spread unseen"});
  }
  judgement.absent(files, say("`knob` line of ", looks.knob, " in arm ", arm), step);
}

}  // namespace

record::CheckResult host_checks(const Attempt& attempt) {
  Judgement judgement("D43.host_checks", attempt);
  if (judgement.for_training_cases() && !attempt.axes.flag("nan_check_loss") && !attempt.axes.flag("nan_check_grad"))
    judgement.not_applicable("the case asks for no check on the host");
  if (judgement.settled()) return judgement.result("", "");
  const Expected& expected = judgement.expected();
  const std::string_view arm = expected.graph ? "lockstep_graph" : "eager_a";
  const std::int64_t first = expected.graph ? expected.first_replay : 0;
  const std::int64_t last = expected.graph ? expected.last_inputs_step : expected.steps - 1;
  const std::vector<int> last_stage = roles(attempt.axes, attempt.context.world_size).back();
  for (const RankFiles& files : attempt.ranks)
    for (std::int64_t step = first; step <= last; ++step)
      for (const Looks& looks : kLooks)
        if (attempt.axes.flag(looks.axis))
          judge_step(judgement, files, looks, arm, step, looks.called == "gradients" || files.rank >= last_stage.front());
  return judgement.result(say("looked in ", last - first + 1, " steps on ", attempt.ranks.size(), " ranks"),
                          "every loss and gradient that the case asks for");
}

}  // namespace graphproof::checks

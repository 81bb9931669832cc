// D43: the host's NaN checks are made in every step, next to replays too.
#include <array>
#include <cmath>

#include "suites/checks/attempt/arms.h"
#include "suites/checks/attempt/concat.h"
#include "suites/checks/attempt/judgement.h"
#include "suites/checks/training/hyperparameter_line.h"

namespace graphproof::checks::d43 {
namespace {

using record::HyperparameterLine;

/// What the host looks at, under which name it is counted, and for which axis.
struct Looks {
  std::string_view axis, name, called;
};
constexpr std::array kLooks = {Looks{"nan_check_loss", "losses_checked", "losses"},
                               Looks{"nan_check_grad", "gradients_checked", "gradients"}};

void judge_step(Judgement& judgement, const RankFiles& files, const Looks& looks,
                std::string_view arm, std::int64_t step, bool has_them) {
  const HyperparameterLine* line = hyperparameter_line(judgement, files, arm, step, looks.name);
  if (!line)
    return judgement.absent<HyperparameterLine>(files, concat("of ", looks.name, " in arm ", arm),
                                                step);
  if (std::isfinite(line->host) && (line->host > 0) == has_them && line->effective == line->host)
    return judgement.confirm(files.rank);
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

/// In every step the host looked at as many losses and gradients as the axes nan_check_loss and
/// nan_check_grad ask for.
record::CheckResult host_checks(Judgement& judgement, const Attempt& attempt) {
  const WatchedSteps watched(judgement.expected());
  const std::vector<int> last_stage =
      ranks_by_stage(attempt.axes, attempt.context.world_size).back();
  for (const RankFiles& files : attempt.ranks)
    for (std::int64_t step = watched.first; step <= watched.last; ++step)
      for (const Looks& looks : kLooks)
        if (attempt.axes.flag(looks.axis))
          judge_step(judgement, files, looks, watched.arm, step,
                     looks.called == "gradients" || files.rank >= last_stage.front());
  return judgement.result(
      concat("looked in ", watched.count(), " steps on ", attempt.ranks.size(), " ranks"),
      "every loss and gradient that the case asks for");
}

}  // namespace graphproof::checks::d43

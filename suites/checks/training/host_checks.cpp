// D43: the host checks for NaN in every step, also if the step is a replay.
#include <array>
#include <cmath>

#include "suites/checks/attempt/arms.h"
#include "suites/checks/attempt/concat.h"
#include "suites/checks/attempt/judgement.h"
#include "suites/checks/training/hyperparameter_line.h"

namespace graphproof::checks::d43 {
namespace {

using record::HyperparameterLine;

/// Tensors that the host checks for NaN: the axis that asks for it, the name of the count in
/// evidence, and the name in messages.
struct CheckedTensors {
  std::string_view axis, name, called;
};
constexpr std::array kChecked = {
    CheckedTensors{"nan_check_loss", "losses_checked", "losses"},
    CheckedTensors{"nan_check_grad", "gradients_checked", "gradients"}};

void judge_step(Judgement& judgement, const RankFiles& files, const CheckedTensors& checked,
                std::string_view arm, std::int64_t step, bool has_them) {
  const HyperparameterLine* line = hyperparameter_line(judgement, files, arm, step, checked.name);
  if (!line)
    return judgement.absent<HyperparameterLine>(files, concat("of ", checked.name, " in arm ", arm),
                                                step);
  if (std::isfinite(line->host) && (line->host > 0) == has_them && line->effective == line->host)
    return judgement.confirm(files.rank);
  judgement.defect({.rank = files.rank,
                    .step = step,
                    .what = concat("the host did not check all ", checked.called, " of arm ", arm,
                                   " at step ", step),
                    .got = concat(line->effective, " checks"),
                    .want = has_them ? concat(line->host, ", more than none")
                                     : "none, on a stage without a loss",
                    .why = "if replays skip the check, NaN spreads unnoticed"});
}

}  // namespace

/// In every step the host checked as many losses and gradients for NaN as axes nan_check_loss and
/// nan_check_grad ask for.
record::CheckResult host_checks(Judgement& judgement, const Attempt& attempt) {
  const WatchedSteps watched(judgement.expected());
  const std::vector<int> last_stage =
      ranks_by_stage(attempt.axes, attempt.context.world_size).back();
  for (const RankFiles& files : attempt.ranks)
    for (std::int64_t step = watched.first; step <= watched.last; ++step)
      for (const CheckedTensors& checked : kChecked)
        if (attempt.axes.flag(checked.axis))
          judge_step(judgement, files, checked, watched.arm, step,
                     checked.called == "gradients" || files.rank >= last_stage.front());
  return judgement.result(
      concat("checked in ", watched.count(), " steps on ", attempt.ranks.size(), " ranks"),
      "every loss and gradient that the case asks for");
}

}  // namespace graphproof::checks::d43

// D04: numbers that the host changes between replays reach the step: the learning rate, the step
// number in Adam's bias correction, and the loss scale.
#include <cmath>

#include "suites/checks/attempt/arms.h"
#include "suites/checks/attempt/concat.h"
#include "suites/checks/attempt/judgement.h"
#include "suites/checks/training/hyperparameter_line.h"

namespace graphproof::checks::d04 {
namespace {

using record::HyperparameterLine;

/// A hyperparameter: its name in evidence, its name in messages, and the part of the step that uses
/// it, such as "the optimizer".
struct Hyperparameter {
  std::string_view name, called, user;
};
constexpr Hyperparameter kLearningRate{"learning_rate", "learning rate", "the parameter update"};
constexpr Hyperparameter kOptimizerStep{"optimizer_step", "step number", "the optimizer"};
constexpr Hyperparameter kLossScale{"loss_scale", "loss scale", "the backward"};

bool known(const HyperparameterLine& line) {
  return std::isfinite(line.host) && std::isfinite(line.effective) && std::isfinite(line.bound) &&
         line.bound >= 0;
}

/// Compares the effective value of every replayed step with the host's.
record::CheckResult follows_the_host(Judgement& judgement, const Attempt& attempt,
                                     const Hyperparameter& what) {
  const Expected& expected = judgement.expected();
  const auto [arm, first, last] = WatchedSteps(expected);
  for (const RankFiles& files : attempt.ranks) {
    std::optional<double> first_rate;
    bool distinguishable = false;  // from the value of the first step
    for (std::int64_t step = first; step <= last; ++step) {
      const HyperparameterLine* line = hyperparameter_line(judgement, files, arm, step, what.name);
      if (!line) {
        judgement.absent<HyperparameterLine>(files, concat("of the ", what.called, " in arm ", arm),
                                             step);
        continue;
      }
      if (!known(*line)) {
        judgement.defect({.rank = files.rank,
                          .step = step,
                          .what = concat("the effective ", what.called, " of arm ", arm,
                                         " is unknown at step ", step),
                          .got = concat("host ", shown(line->host), ", effective ",
                                        shown(line->effective), ", bound ", shown(line->bound)),
                          .want = "three finite numbers",
                          .why = "if all gradients are zero or not finite, no rate can be computed "
                                 "from the update"});
        continue;
      }
      if (!first_rate) first_rate = line->host;
      distinguishable |= std::abs(line->host - *first_rate) > line->bound;
      if (std::abs(line->effective - line->host) <= line->bound) {
        judgement.confirm(files.rank);
        continue;
      }
      judgement.defect({.rank = files.rank,
                        .step = step,
                        .what = concat(what.user, " of arm ", arm, " used another ", what.called,
                                       " at step ", step),
                        .got = concat(line->effective),
                        .want = concat(line->host, " within ", line->bound, ", the host's value"),
                        .why = "a scalar passed by value is frozen at capture"});
    }
    if (first_rate && !distinguishable) {
      judgement.unexercised(concat("on rank ", files.rank, " no step's ", what.called,
                                   " is further from ", *first_rate,
                                   " than its bound, so a frozen value would not be noticed"));
    }
  }
  return judgement.result(concat("the host's value in ", last - first + 1, " steps on ",
                                 attempt.ranks.size(), " ranks"),
                          "the host's value in every step");
}

/// Reports ranks with different loss scales: one of them skipped a step that another one did.
void judge_same_scale(Judgement& judgement, const Attempt& attempt) {
  const Expected& expected = judgement.expected();
  const std::string_view arm = expected.graph ? "lockstep_graph" : "eager_a";
  for (std::int64_t step = 0; step < expected.steps; ++step) {
    std::optional<double> first;
    for (const RankFiles& files : attempt.ranks) {
      const HyperparameterLine* line =
          hyperparameter_line(judgement, files, arm, step, kLossScale.name);
      if (!line || !std::isfinite(line->host)) continue;  // follows_the_host() reports it
      if (!first) first = line->host;
      if (line->host == *first) continue;
      judgement.defect(
          {.rank = files.rank,
           .step = step,
           .what =
               concat("the ranks scale their losses differently in arm ", arm, " at step ", step),
           .got = concat(line->host, " on rank ", files.rank),
           .want = concat(*first, ", as on rank ", attempt.ranks.front().rank),
           .why = "after a rank skips a step that another rank does, they train different models"});
    }
  }
}

}  // namespace

/// The learning rate by which the parameters were updated differs from the host's by at most the
/// bound of its line: in every replayed step of lockstep_graph, or in every step of eager_a in a
/// case without graphs. If the bounds of all steps are too wide to distinguish the rate from that
/// of the first step, the check is unexercised.
record::CheckResult learning_rate(Judgement& judgement, const Attempt& attempt) {
  return follows_the_host(judgement, attempt, kLearningRate);
}

/// The same for the loss scale that the backward read. In addition, all ranks have the same scale.
record::CheckResult loss_scale(Judgement& judgement, const Attempt& attempt) {
  judge_same_scale(judgement, attempt);
  return follows_the_host(judgement, attempt, kLossScale);
}

/// The same for Adam's step number in device memory.
record::CheckResult optimizer_step(Judgement& judgement, const Attempt& attempt) {
  return follows_the_host(judgement, attempt, kOptimizerStep);
}

}  // namespace graphproof::checks::d04

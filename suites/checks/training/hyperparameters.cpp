// D04: a number that the host changes between replays reaches the step: the learning rate, the
// step number of Adam's bias correction, the loss scale.
#include <cmath>

#include "suites/checks/attempt/arms.h"
#include "suites/checks/attempt/concat.h"
#include "suites/checks/attempt/judgement.h"
#include "suites/checks/training/hyperparameter_line.h"

namespace graphproof::checks::d04 {
namespace {

using record::HyperparameterLine;

/// A hyperparameter by the name in its lines, and its words in messages.
struct Hyperparameter {
  std::string_view name, called, felt;
};
constexpr Hyperparameter kLearningRate{"learning_rate", "learning rate", "the parameters of arm"};
constexpr Hyperparameter kOptimizerStep{"optimizer_step", "step number", "the optimizer of arm"};
constexpr Hyperparameter kLossScale{"loss_scale", "loss scale", "the backward of arm"};

bool known(const HyperparameterLine& line) {
  return std::isfinite(line.host) && std::isfinite(line.effective) && std::isfinite(line.bound) &&
         line.bound >= 0;
}

record::CheckResult follows_the_host(Judgement& judgement, const Attempt& attempt,
                                     const Hyperparameter& what) {
  const Expected& expected = judgement.expected();
  const auto [arm, first, last] = WatchedSteps(expected);
  for (const RankFiles& files : attempt.ranks) {
    std::optional<double> first_rate;
    bool told_apart = false;
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
                          .what = concat("the felt ", what.called, " of arm ", arm,
                                         " is unknown at step ", step),
                          .got = concat("host ", shown(line->host), ", felt ",
                                        shown(line->effective), ", bound ", shown(line->bound)),
                          .want = "three finite numbers",
                          .why = "where every gradient is zero or not finite no rate can be felt"});
        continue;
      }
      if (!first_rate) first_rate = line->host;
      told_apart |= std::abs(line->host - *first_rate) > line->bound;
      if (std::abs(line->effective - line->host) <= line->bound) {
        judgement.confirm(files.rank);
        continue;
      }
      judgement.defect(
          {.rank = files.rank,
           .step = step,
           .what = concat(what.felt, " ", arm, " felt another ", what.called, " at step ", step),
           .got = concat(line->effective),
           .want = concat(line->host, " within ", line->bound, ", as on the host"),
           .why = "a scalar passed by value is frozen at capture"});
    }
    if (first_rate && !told_apart) {
      judgement.unexercised(concat("on rank ", files.rank, " no step's ", what.called,
                                   " is further from ", *first_rate,
                                   " than its bound, so a frozen one would not show"));
    }
  }
  return judgement.result(
      concat("felt as set in ", last - first + 1, " steps on ", attempt.ranks.size(), " ranks"),
      "as on the host in every step");
}

/// A step that one rank skips and another takes leaves them with other scales.
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
           .why =
               "a rank that skips a step which another takes trains another model from then on"});
    }
  }
}

}  // namespace

/// The learning rate that the parameters felt lies within its bound of the host's in every step:
/// in every replayed step of lockstep_graph, or in every step of eager_a in a case without graphs.
/// Where the bound is in all steps too wide to tell the rate from the first one, the check is
/// unexercised.
record::CheckResult learning_rate(Judgement& judgement, const Attempt& attempt) {
  return follows_the_host(judgement, attempt, kLearningRate);
}

/// The same for the loss scale that backward read; and every rank has the scale of rank 0.
record::CheckResult loss_scale(Judgement& judgement, const Attempt& attempt) {
  judge_same_scale(judgement, attempt);
  return follows_the_host(judgement, attempt, kLossScale);
}

/// The same for Adam's step number, read from device memory.
record::CheckResult optimizer_step(Judgement& judgement, const Attempt& attempt) {
  return follows_the_host(judgement, attempt, kOptimizerStep);
}

}  // namespace graphproof::checks::d04

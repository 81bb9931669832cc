// D04: a host-side knob that changes between replays reaches the parameters: the learning rate, the
// step number of Adam's bias correction, the loss scale. Others become rows of `knob` lines with
// their own names.
#include <cmath>

#include "suites/checks/attempt/concat.h"
#include "suites/checks/attempt/detectors.h"
#include "suites/checks/attempt/judgement.h"

namespace graphproof::checks {
namespace {

using record::HyperparameterLine;

/// A hyperparameter by the name in its lines, and its words in messages.
struct Hyperparameter {
  std::string_view name, called, felt;
};
constexpr Hyperparameter kLearningRate{"learning_rate", "learning rate", "the parameters of arm"};
constexpr Hyperparameter kOptimizerStep{"optimizer_step", "step number", "the optimizer of arm"};
constexpr Hyperparameter kLossScale{"loss_scale", "loss scale", "the backward of arm"};

const HyperparameterLine* line_of(Judgement& judgement, const RankFiles& files,
                                  const Hyperparameter& what, std::string_view arm,
                                  std::int64_t step) {
  for (const auto* line : judgement.find<HyperparameterLine>(files, arm, step))
    if (line->name == what.name) return line;
  return nullptr;
}

bool known(const HyperparameterLine& line) {
  return std::isfinite(line.host) && std::isfinite(line.effective) && std::isfinite(line.bound) &&
         line.bound >= 0;
}

record::CheckResult follows_the_host(Judgement& judgement, const Attempt& attempt,
                                     const Hyperparameter& what) {
  const Expected& expected = judgement.expected();
  // With graphs the replays are what can freeze a rate; without, the eager arm shows that the probe
  // itself is right.
  const std::string_view arm = expected.graph ? "lockstep_graph" : "eager_a";
  const std::int64_t first = expected.graph ? expected.first_replay : 0;
  const std::int64_t last = expected.graph ? expected.last_inputs_step : expected.steps - 1;
  for (const RankFiles& files : attempt.ranks) {
    std::optional<double> first_rate;
    bool told_apart = false;
    for (std::int64_t step = first; step <= last; ++step) {
      const HyperparameterLine* line = line_of(judgement, files, what, arm, step);
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
        judgement.saw(files.rank);
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
      const HyperparameterLine* line = line_of(judgement, files, kLossScale, arm, step);
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

record::CheckResult learning_rate(const Attempt& attempt) {
  Judgement judgement("D04.learning_rate", attempt);
  if (!judgement.for_training_cases()) return judgement.result("", "");
  return follows_the_host(judgement, attempt, kLearningRate);
}

record::CheckResult loss_scale(const Attempt& attempt) {
  Judgement judgement("D04.loss_scale", attempt);
  if (judgement.for_training_cases() &&
      (attempt.axes.text("precision") != "fp16" || attempt.axes.text("loss_scale") != "dynamic"))
    judgement.not_applicable("only fp16 has a loss scale that changes");
  if (judgement.settled()) return judgement.result("", "");
  judge_same_scale(judgement, attempt);
  return follows_the_host(judgement, attempt, kLossScale);
}

record::CheckResult optimizer_step(const Attempt& attempt) {
  Judgement judgement("D04.optimizer_step", attempt);
  if (judgement.for_training_cases() && attempt.axes.text("optimizer") != "adam")
    judgement.not_applicable("only Adam counts its steps");
  if (judgement.settled()) return judgement.result("", "");
  return follows_the_host(judgement, attempt, kOptimizerStep);
}

}  // namespace graphproof::checks

// D04: a host-side knob that changes between replays reaches the parameters: the learning rate, the
// step number of Adam's bias correction, the loss scale. Others become rows of `knob` lines with
// their own names.
#include <cmath>

#include "suites/checks/attempt/concat.h"
#include "suites/checks/attempt/detectors.h"
#include "suites/checks/attempt/judgement.h"

namespace graphproof::checks {
namespace {

/// A knob as its `knob` lines name it, and its words in messages.
struct Knob {
  std::string_view name, called, felt;
};
constexpr Knob kLearningRate{"learning_rate", "learning rate", "the parameters of arm"};
constexpr Knob kOptimizerStep{"optimizer_step", "step number", "the optimizer of arm"};
constexpr Knob kLossScale{"loss_scale", "loss scale", "the backward of arm"};

const Line* knob_line(const RankFiles& files, const Knob& knob, std::string_view arm,
                      std::int64_t step) {
  for (const Line* line : files.find("knob", arm, step))
    if (is(*line, "knob", knob.name)) return line;
  return nullptr;
}

struct Reading {
  double host, effective, bound;
};

std::optional<Reading> reading_of(const Line& line) {
  const auto host = number(line, "host"), effective = number(line, "effective"),
             bound = number(line, "bound");
  if (!host || !effective || !bound || *bound < 0) return std::nullopt;
  return Reading{*host, *effective, *bound};
}

record::CheckResult follows_the_host(Judgement& judgement, const Attempt& attempt,
                                     const Knob& knob) {
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
      const Line* line = knob_line(files, knob, arm, step);
      if (!line) {
        judgement.absent(files, concat("`knob` line of the ", knob.called, " in arm ", arm), step);
        continue;
      }
      const auto reading = reading_of(*line);
      if (!reading) {
        judgement.defect({.rank = files.rank,
                          .step = step,
                          .what = concat("the felt ", knob.called, " of arm ", arm,
                                         " is unknown at step ", step),
                          .got = concat("host ", field(*line, "host").dump(), ", felt ",
                                        field(*line, "effective").dump(), ", bound ",
                                        field(*line, "bound").dump()),
                          .want = "three finite numbers",
                          .why = "where every gradient is zero or not finite no rate can be felt"});
        continue;
      }
      if (!first_rate) first_rate = reading->host;
      told_apart |= std::abs(reading->host - *first_rate) > reading->bound;
      if (std::abs(reading->effective - reading->host) <= reading->bound) {
        judgement.saw(files.rank);
        continue;
      }
      judgement.defect(
          {.rank = files.rank,
           .step = step,
           .what = concat(knob.felt, " ", arm, " felt another ", knob.called, " at step ", step),
           .got = concat(reading->effective),
           .want = concat(reading->host, " within ", reading->bound, ", as on the host"),
           .why = "a scalar passed by value is frozen at capture"});
    }
    if (first_rate && !told_apart) {
      judgement.unexercised(concat("on rank ", files.rank, " no step's ", knob.called,
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
      const Line* line = knob_line(files, kLossScale, arm, step);
      const auto host = line ? number(*line, "host") : std::nullopt;
      if (!host) continue;  // follows_the_host() says so
      if (!first) first = host;
      if (*host == *first) continue;
      judgement.defect(
          {.rank = files.rank,
           .step = step,
           .what =
               concat("the ranks scale their losses differently in arm ", arm, " at step ", step),
           .got = concat(*host, " on rank ", files.rank),
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

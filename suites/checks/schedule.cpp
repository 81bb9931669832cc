// D41: every pipeline stage ran its forwards and backwards in the order of its schedule, in the replays too.
#include <cstdlib>
#include <vector>

#include "suites/checks/detectors.h"
#include "suites/checks/judgement.h"
#include "suites/checks/say.h"
#include "workloads/order/pipeline_turns.h"

namespace graphproof::checks {
namespace {

/// As evidence has it: chunk * microbatches + microbatch + 1, a backward with a minus.
std::vector<std::int64_t> scheduled(const Axes& axes, std::int64_t stage) {
  const std::int64_t microbatches = axes.integer("microbatches");
  std::vector<std::int64_t> list;
  for (const order::Turn& turn : order::turns({.pp = axes.integer("pp"),
                                               .rank = stage,
                                               .chunks = axes.integer("vpp"),
                                               .microbatches = microbatches,
                                               .group = axes.integer("microbatch_group")}))
    if (turn.work) {
      const std::int64_t number = turn.work->chunk * microbatches + turn.work->microbatch + 1;
      list.push_back(turn.work->forward ? number : -number);
    }
  return list;
}

std::string describe(const std::vector<std::int64_t>& list, std::size_t entry, std::int64_t microbatches) {
  if (entry >= list.size()) return "nothing";
  const std::int64_t number = std::abs(list[entry]) - 1;
  if (list[entry] == 0) return "nothing";
  return say(list[entry] > 0 ? "the forward" : "the backward", " of microbatch ", number % microbatches, ", chunk ",
             number / microbatches);
}

}  // namespace

record::CheckResult schedule(const Attempt& attempt) {
  Judgement judgement("D41.schedule", attempt);
  if (judgement.for_training_cases() && attempt.axes.integer("pp") == 1)
    judgement.not_applicable("pp is 1, so there is no schedule of stages");
  if (judgement.settled()) return judgement.result("", "");
  const Expected& expected = judgement.expected();
  const std::int64_t stage_ranks = attempt.context.world_size / attempt.axes.integer("pp");
  const std::string_view arm = expected.graph ? "lockstep_graph" : "eager_a";
  const std::int64_t first = expected.graph ? expected.first_replay : 0;
  const std::int64_t last = expected.graph ? expected.last_inputs_step : expected.steps - 1;
  for (const RankFiles& files : attempt.ranks) {
    const std::int64_t stage = files.rank / stage_ranks;
    const std::vector<std::int64_t> want = scheduled(attempt.axes, stage);
    for (std::int64_t step = first; step <= last; ++step) {
      const auto lines = files.find("schedule", arm, step);
      const auto ran = lines.empty() ? std::nullopt : integers(*lines.front(), "ran");
      if (!ran) {
        judgement.absent(files, say("`schedule` line of arm ", arm), step);
        continue;
      }
      if (*ran == want) {
        judgement.saw(files.rank);
        continue;
      }
      std::size_t entry = 0;
      while (entry < ran->size() && entry < want.size() && (*ran)[entry] == want[entry]) ++entry;
      judgement.defect({.rank = files.rank,
                        .step = step,
                        .what = say("stage ", stage, " left its schedule at entry ", entry, " of step ", step, " of arm ", arm),
                        .got = describe(*ran, entry, expected.microbatches),
                        .want = describe(want, entry, expected.microbatches),
                        .why = "its neighbours send and expect the scheduled microbatch, so activations meet the labels "
                               "or the weights of another one"});
    }
  }
  return judgement.result(say("the schedule in ", last - first + 1, " steps on ", attempt.ranks.size(), " ranks"),
                          "every stage's 1F1B order, interleaved over its chunks");
}

}  // namespace graphproof::checks

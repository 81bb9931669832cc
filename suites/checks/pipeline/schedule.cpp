// D41: every pipeline stage ran its forwards and backwards in the order of its schedule, also in
// replays.
#include <cstdlib>
#include <map>
#include <vector>

#include "suites/checks/attempt/arms.h"
#include "suites/checks/attempt/concat.h"
#include "suites/checks/attempt/judgement.h"
#include "workloads/pipeline/pipeline_schedule.h"

namespace graphproof::checks::d41 {
namespace {

/// The schedule as in evidence: a forward is chunk * microbatches + microbatch + 1, a backward is
/// the negative of that.
std::vector<std::int64_t> scheduled_chunks(const order::Stage& stage) {
  std::vector<std::int64_t> list;
  for (const order::ScheduleSlot& slot : order::schedule_slots(stage))
    if (slot.work) {
      const std::int64_t number = slot.work->chunk * stage.microbatches + slot.work->microbatch + 1;
      list.push_back(slot.work->forward ? number : -number);
    }
  return list;
}

/// The schedule of a step that runs layer by layer, as in evidence: a forward is
/// 2 * layer * microbatches + microbatch + 1, a backward is the negative of that, and delayed
/// weight gradients are the negative of (2 * layer + 1) * microbatches + microbatch + 1. An entry
/// of layer_order() that occurs again belongs to the next microbatch. The layers that predict are
/// the last of the last stage.
std::vector<std::int64_t> scheduled_layers(const order::Stage& stage, std::int64_t layers,
                                           std::int64_t predicting, bool weight_gradients) {
  std::vector of_chunks(static_cast<std::size_t>(stage.chunks), layers / stage.chunks);
  if (stage.rank + 1 == stage.pp) of_chunks.back() += predicting;
  const auto order = order::layer_order(order::chunk_order(stage), of_chunks, weight_gradients);
  std::map<double, std::int64_t> ran;
  std::vector<std::int64_t> list;
  for (const double entry : order.entries) {
    const auto place =
        static_cast<std::int64_t>(2 * (std::abs(entry) - 1));  // odd where it is half-integral
    const std::int64_t number = place * stage.microbatches + ran[entry]++ + 1;
    list.push_back(entry > 0 ? number : -number);
  }
  return list;
}

std::vector<std::int64_t> scheduled(const Axes& axes, std::int64_t stage,
                                    const Expected& expected) {
  const order::Stage own{.pp = axes.integer("pp"),
                         .rank = stage,
                         .chunks = axes.integer("vpp"),
                         .microbatches = axes.integer("microbatches"),
                         .group = axes.integer("microbatch_group")};
  return axes.flag("overlap_ep_comm")
             ? scheduled_layers(own, expected.layers, axes.integer("mtp_num_layers"),
                                axes.flag("delay_wgrad"))
             : scheduled_chunks(own);
}

std::string describe(const std::vector<std::int64_t>& list, std::size_t entry,
                     std::int64_t microbatches, bool by_layer) {
  if (entry >= list.size() || list[entry] == 0) return "nothing";
  const std::int64_t number = std::abs(list[entry]) - 1, place = number / microbatches;
  const char* work = list[entry] > 0              ? "the forward"
                     : by_layer && place % 2 == 1 ? "the delayed weight gradients"
                                                  : "the backward";
  return concat(work, " of microbatch ", number % microbatches, by_layer ? ", layer " : ", chunk ",
                by_layer ? place / 2 : place);
}

}  // namespace

/// In every step each pipeline stage ran its forwards and backwards in the order of its schedule;
/// if the step runs layer by layer, those of its layers.
record::CheckResult schedule(Judgement& judgement, const Attempt& attempt) {
  const bool by_layer = attempt.axes.flag("overlap_ep_comm");
  const Expected& expected = judgement.expected();
  const std::int64_t stage_ranks = attempt.context.world_size / attempt.axes.integer("pp");
  const auto [arm, first, last] = WatchedSteps(expected);
  for (const RankFiles& files : attempt.ranks) {
    const std::int64_t stage = files.rank / stage_ranks;
    const std::vector<std::int64_t> want = scheduled(attempt.axes, stage, expected);
    for (std::int64_t step = first; step <= last; ++step) {
      const auto* line = judgement.first<record::ScheduleLine>(files, arm, step);
      if (!line) {
        judgement.absent<record::ScheduleLine>(files, concat("of arm ", arm), step);
        continue;
      }
      const std::vector<std::int64_t>& ran = line->ran;
      if (ran == want) {
        judgement.confirm(files.rank);
        continue;
      }
      std::size_t entry = 0;
      while (entry < ran.size() && entry < want.size() && ran[entry] == want[entry]) ++entry;
      judgement.defect({.rank = files.rank,
                        .step = step,
                        .what = concat("stage ", stage, " did not follow its schedule at entry ",
                                       entry, " of step ", step, " of arm ", arm),
                        .got = describe(ran, entry, expected.microbatches, by_layer),
                        .want = describe(want, entry, expected.microbatches, by_layer),
                        .why = by_layer ? "graphs reuse each other's memory, and exchanges match "
                                          "those of other ranks, only in the captured order"
                                        : "its neighbours send and expect the scheduled "
                                          "microbatch, so activations are combined with "
                                          "another one's labels or weights"});
    }
  }
  return judgement.result(
      concat("the schedule in ", last - first + 1, " steps on ", attempt.ranks.size(), " ranks"),
      by_layer ? "the layers of a forward and of a backward in turn, each stage in its order"
               : "every stage's 1F1B order, interleaved over its chunks");
}

}  // namespace graphproof::checks::d41

// D18: the capture itself ran nothing, and each replay ran every layer. Counters on the device show
// it, so that work on a stream outside the capture is found: it runs during the capture and is
// missing from the replays.
#include "suites/checks/attempt/arms.h"
#include "suites/checks/attempt/capture.h"
#include "suites/checks/attempt/concat.h"
#include "suites/checks/attempt/judgement.h"

namespace graphproof::checks::d18 {
namespace {

using record::CaptureLine;
using record::ReplayLine;

/// Whether the line has a counter of every layer, before and after. Reports a defect if not.
template <class Line>
bool has_counters(Judgement& judgement, const RankFiles& files, const Line& line,
                  std::optional<std::int64_t> step, const std::string& where) {
  const std::size_t before = line.counter_before.size(), after = line.counter_after.size();
  const auto counted = static_cast<std::size_t>(judgement.expected_of(files).counted_layers);
  const std::size_t layers = counted > 0 ? counted : before;
  if (layers > 0 && before == layers && after == layers) return true;
  judgement.defect({.rank = files.rank,
                    .step = step,
                    .what = concat("layer counters around ", where, " are missing"),
                    .got = concat(shown(line.counter_before), " and ", shown(line.counter_after)),
                    .want = concat("a count for each of ", counted, " layers, before and after"),
                    .why = "a layer without a count may not have run"});
  return false;
}

void judge_captures(Judgement& judgement, const Attempt& attempt, const RankFiles& files) {
  for (const char* arm : graph_arms(attempt))
    if (!judgement.first<CaptureLine>(files, arm))
      judgement.absent<CaptureLine>(files, concat("of arm ", arm));
  for (const CaptureLine* capture : successful_captures(judgement, files)) {
    if (!has_counters(judgement, files, *capture, std::nullopt,
                      "the capture of " + capture_name(*capture)))
      continue;
    for (std::size_t layer = 0; layer < capture->counter_before.size(); ++layer) {
      const std::int64_t ran = capture->counter_after[layer] - capture->counter_before[layer];
      if (ran == 0) continue;
      judgement.defect(
          {.rank = files.rank,
           .step = std::nullopt,
           .what = concat("layer ", layer, " ran while ", capture_name(*capture), " was captured"),
           .got = concat(ran, " forwards"),
           .want = "0: a capture records work and runs none",
           .why = "work on a stream that was not captured runs once at capture and is missing from "
                  "every replay"});
      break;
    }
  }
}

/// `steps`: how many steps ran between the two readings of the counters.
void judge_replay(Judgement& judgement, const RankFiles& files, const ReplayLine& replay,
                  std::int64_t steps) {
  const std::string where = concat("step ", replay.step, " of arm ", replay.arm);
  if (!has_counters(judgement, files, replay, replay.step, where)) return;
  const Expected& expected = judgement.expected();
  for (std::size_t layer = 0; layer < replay.counter_before.size(); ++layer) {
    const std::int64_t want = expected.forwards_per_step * steps;
    const std::int64_t ran = replay.counter_after[layer] - replay.counter_before[layer];
    if (ran == want) continue;
    judgement.defect(
        {.rank = files.rank,
         .step = replay.step,
         .what = concat("up to ", where, " layer ", layer, " did not run as often as eager does"),
         .got = concat(ran, " forwards"),
         .want = concat(want, " forwards in ", steps, " steps of ", expected.microbatches,
                        " microbatches"),
         .why = "work that a replay leaves out keeps its old result without any error"});
    return;
  }
  judgement.confirm(files.rank);
}

/// The counters are read before and after each replay. In an arm that runs free they are read only
/// after its last step; they begin at 0 and so include the warm-up.
void judge_replays(Judgement& judgement, const Attempt& attempt, const RankFiles& files) {
  for (const char* arm : graph_arms(attempt)) {
    const auto lines = judgement.find<ReplayLine>(files, arm);
    for (const ReplayLine* line : lines)
      judge_replay(judgement, files, *line, runs_free(arm) ? line->step + 1 : 1);
    if (lines.empty()) judgement.absent<ReplayLine>(files, concat("of arm ", arm));
  }
  for (const auto& [arm, step] : watched_replays(attempt, judgement.expected()))
    if (!judgement.first<ReplayLine>(files, arm, step))
      judgement.absent<ReplayLine>(files, concat("of arm ", arm), step);
}

}  // namespace

/// No capture increments the layers' counters on the device, and every replay of every graph arm
/// increments them once for each microbatch.
record::CheckResult coverage(Judgement& judgement, const Attempt& attempt) {
  if (!judgement.has_replays()) return judgement.result("", "");
  for (const RankFiles& files : attempt.ranks) {
    judge_captures(judgement, attempt, files);
    judge_replays(judgement, attempt, files);
  }
  return judgement.result(concat("nothing ran at capture, every layer ran in ",
                                 watched_replays(attempt, judgement.expected()).size(),
                                 " replays on ", attempt.ranks.size(), " ranks"),
                          "every layer, once for each microbatch");
}

}  // namespace graphproof::checks::d18

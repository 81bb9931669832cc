// D18: the capture itself ran nothing, and each replay ran every layer. Device counters see it, so
// work that went to a stray stream can't hide: it runs at capture and is missing at replay.
#include "suites/checks/attempt/arms.h"
#include "suites/checks/attempt/capture.h"
#include "suites/checks/attempt/concat.h"
#include "suites/checks/attempt/detectors.h"
#include "suites/checks/attempt/judgement.h"

namespace graphproof::checks {
namespace {

using Counters = std::vector<std::int64_t>;

struct Moved {
  Counters before, after;
};

/// Nothing, and a defect, when the counters are no list for every layer.
std::optional<Moved> counters_of(Judgement& judgement, const RankFiles& files, const Line& line,
                                 const std::string& where) {
  const auto before = integers(line, "counter_before"), after = integers(line, "counter_after");
  const std::size_t layers =
      judgement.expected().layers > 0 ? judgement.expected().layers : (before ? before->size() : 0);
  if (before && after && layers > 0 && before->size() == layers && after->size() == layers)
    return Moved{*before, *after};
  judgement.defect({.rank = files.rank,
                    .step = integer(line, "step"),
                    .what = concat("the layer counters around ", where, " are not there"),
                    .got = concat(field(line, "counter_before").dump(), " and ",
                                  field(line, "counter_after").dump()),
                    .want = concat("a count for each of ", judgement.expected().layers,
                                   " layers, before and after"),
                    .why = "a layer that nobody counts may not have run"});
  return std::nullopt;
}

void judge_captures(Judgement& judgement, const Attempt& attempt, const RankFiles& files) {
  for (const char* arm : graph_arms(attempt))
    if (!files.first("capture", arm))
      judgement.absent(files, concat("`capture` line of arm ", arm));
  for (const Line* capture : successful_captures(files)) {
    const auto moved =
        counters_of(judgement, files, *capture, "the capture of " + capture_name(*capture));
    for (std::size_t layer = 0; moved && layer < moved->before.size(); ++layer) {
      const std::int64_t ran = moved->after[layer] - moved->before[layer];
      if (ran == 0) continue;
      judgement.defect(
          {.rank = files.rank,
           .step = integer(*capture, "step"),
           .what = concat("layer ", layer, " ran while ", capture_name(*capture), " was captured"),
           .got = concat(ran, " forwards"),
           .want = "0: a capture records and runs nothing",
           .why = "work on a stream that was not captured runs once at capture and is missing from "
                  "every replay"});
      break;
    }
  }
}

/// `steps`: how many steps lie between the two looks at the counters.
void judge_replay(Judgement& judgement, const RankFiles& files, const Line& replay,
                  std::int64_t steps) {
  const std::string arm = text(replay, "arm");
  const auto step = integer(replay, "step");
  const std::string where = concat("step ", step.value_or(-1), " of arm ", arm);
  const auto moved = counters_of(judgement, files, replay, where);
  if (!moved) return;
  const Expected& expected = judgement.expected();
  for (std::size_t layer = 0; layer < moved->before.size(); ++layer) {
    const std::int64_t want = expected.forwards_per_step * steps;
    const std::int64_t ran = moved->after[layer] - moved->before[layer];
    if (ran == want) continue;
    judgement.defect(
        {.rank = files.rank,
         .step = step,
         .what = concat("up to ", where, " layer ", layer, " did not run as often as eager does"),
         .got = concat(ran, " forwards"),
         .want = concat(want, " forwards in ", steps, " steps of ", expected.microbatches,
                        " microbatches"),
         .why = "what a replay leaves out keeps its old result without any error"});
    return;
  }
  judgement.saw(files.rank);
}

/// One replay between the looks, save where an arm runs free: nothing may look until it has ended,
/// so its counters, which begin at 0, cover the warm-up too.
void judge_replays(Judgement& judgement, const Attempt& attempt, const RankFiles& files) {
  for (const char* arm : graph_arms(attempt)) {
    const auto lines = files.find("replay", arm);
    for (const Line* line : lines)
      judge_replay(judgement, files, *line,
                   runs_free(arm) ? integer(*line, "step").value_or(-1) + 1 : 1);
    if (lines.empty()) judgement.absent(files, concat("`replay` line of arm ", arm));
  }
  for (const auto& [arm, step] : watched_replays(attempt, judgement.expected()))
    if (!files.first("replay", arm, step))
      judgement.absent(files, concat("`replay` line of arm ", arm), step);
}

}  // namespace

record::CheckResult coverage(const Attempt& attempt) {
  Judgement judgement("D18.coverage", attempt);
  if (!judgement.for_training_cases() || !judgement.for_graph_cases())
    return judgement.result("", "");
  for (const RankFiles& files : attempt.ranks) {
    judge_captures(judgement, attempt, files);
    judge_replays(judgement, attempt, files);
  }
  return judgement.result(concat("nothing ran at capture, every layer ran in ",
                                 watched_replays(attempt, judgement.expected()).size(),
                                 " replays on ", attempt.ranks.size(), " ranks"),
                          "every layer, once for each microbatch");
}

}  // namespace graphproof::checks

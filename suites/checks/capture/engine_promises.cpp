// What an engine promises about its own work, as counters at its doors say: D05 the memory its
// graphs touch is still theirs, D12 what it handed out stays, D26 all ranks replay or none does,
// D33 a capture that failed leaves nothing, D35 graphs of one pool run in the order of their
// capture, D37 captured work was warmed up.
#include <algorithm>
#include <map>

#include "suites/checks/attempt/arms.h"
#include "suites/checks/attempt/capture.h"
#include "suites/checks/attempt/concat.h"
#include "suites/checks/attempt/detectors.h"
#include "suites/checks/attempt/judgement.h"
#include "workloads/engine_traits/engine_traits.h"

namespace graphproof::checks {
namespace {

using record::CaptureLine;
using record::EvictionsLine;
using record::FailedCaptureLine;
using record::HandedOutLine;
using record::OperandsLine;
using record::ReplayLine;
using record::TeardownLine;

bool for_trained_graphs(Judgement& judgement) {
  return judgement.for_training_cases() && judgement.for_graph_cases();
}

}  // namespace

record::CheckResult operands_alive(const Attempt& attempt) {
  Judgement judgement("D05.operands_alive", attempt);
  if (!for_trained_graphs(judgement)) return judgement.result("", "");
  if (judgement.settled()) return judgement.result("", "");
  for (const RankFiles& files : attempt.ranks) {
    for (const std::int64_t step : judgement.expected().replayed_steps())
      if (!judgement.first<OperandsLine>(files, "lockstep_graph", step))
        judgement.absent<OperandsLine>(files, "of arm lockstep_graph", step);
    for (const OperandsLine& line : judgement.lines<OperandsLine>(files)) {
      if (line.freed.empty() && line.blocks > 0) {
        judgement.saw(files.rank);
        continue;
      }
      judgement.defect(
          {.rank = files.rank,
           .step = line.step,
           .what = concat("a graph of arm ", line.arm,
                          " is about to touch memory that was freed after its capture"),
           .got = line.freed.empty()
                      ? concat(line.blocks, " blocks looked at, freed: []")
                      : concat(line.freed.front(), ", and ", line.freed.size() - 1, " more"),
           .want = "every block that the graph captured, more than none, with the owner it had",
           .why = "the replay reads or overwrites whatever lies there now"});
    }
  }
  return judgement.result(concat("alive before ", judgement.expected().replayed_steps().size(),
                                 " replayed steps on ", attempt.ranks.size(), " ranks"),
                          "all memory of a graph alive");
}

record::CheckResult kept_losses(const Attempt& attempt) {
  Judgement judgement("D12.kept_losses", attempt);
  if (!for_trained_graphs(judgement)) return judgement.result("", "");
  for (const RankFiles& files : attempt.ranks) {
    for (const std::int64_t step : judgement.expected().replayed_steps())
      if (step != judgement.expected().last_inputs_step &&
          !judgement.first<HandedOutLine>(files, "lockstep_graph", step))
        judgement.absent<HandedOutLine>(files, "of arm lockstep_graph", step);
    for (const HandedOutLine& line : judgement.lines<HandedOutLine>(files)) {
      const auto& [arm, step, what, then, later] = line;
      if (!then.empty() && then == later) {
        judgement.saw(files.rank);
        continue;
      }
      judgement.defect(
          {.rank = files.rank,
           .step = step,
           .what = concat("the ", what, " that arm ", arm, " handed out in step ", step,
                          " changed in the next step"),
           .got = concat("digest ", later.empty() ? "none" : later),
           .want = concat(then.empty() ? "a digest" : then, ", as when they were handed out"),
           .why = "whoever keeps a loss to log or average it later sees another step's"});
    }
  }
  return judgement.result(concat("unchanged one step later on ", attempt.ranks.size(), " ranks"),
                          "what was handed out");
}

record::CheckResult participation(const Attempt& attempt) {
  Judgement judgement("D26.participation", attempt);
  if (!for_trained_graphs(judgement) || !judgement.for_parallel_cases())
    return judgement.result("", "");
  // Every rank launches the same number of graphs in each step, whatever that number is.
  std::map<std::pair<std::string, std::int64_t>, std::pair<int, const ReplayLine*>> first;
  for (const RankFiles& files : attempt.ranks) {
    const auto lines = judgement.lines<ReplayLine>(files);
    if (lines.empty()) judgement.absent<ReplayLine>(files, "");
    for (const ReplayLine& line : lines) {
      const auto& [rank, other] =
          first.try_emplace({line.arm, line.step}, files.rank, &line).first->second;
      if (line.replays == other->replays && line.fallbacks == other->fallbacks) {
        judgement.saw(files.rank);
        continue;
      }
      const auto taken = [](const ReplayLine& one) {
        return concat(one.replays, " launches, ", one.fallbacks, " fallbacks");
      };
      judgement.defect(
          {.rank = files.rank,
           .step = line.step,
           .what =
               concat("ranks ", rank, " and ", files.rank,
                      " did not take the same way through step ", line.step, " of arm ", line.arm),
           .got = taken(line),
           .want = concat(taken(*other), ", as rank ", rank),
           .why = "a rank that runs eagerly beside ranks that replay pairs its collectives with "
                  "other ones"});
    }
  }
  return judgement.result(concat("the same launches on ", attempt.ranks.size(), " ranks"),
                          "one decision for all ranks");
}

record::CheckResult failed_capture_leaves_nothing(const Attempt& attempt) {
  Judgement judgement("D33.failed_capture_leaves_nothing", attempt);
  if (!for_trained_graphs(judgement)) return judgement.result("", "");
  const bool any = std::ranges::any_of(attempt.ranks, [&](const RankFiles& files) {
    return !judgement.lines<FailedCaptureLine>(files).empty();
  });
  if (!any) judgement.not_applicable("no capture failed and was taken back");
  if (judgement.settled()) return judgement.result("", "");
  for (const RankFiles& files : attempt.ranks) {
    for (const FailedCaptureLine& line : judgement.lines<FailedCaptureLine>(files)) {
      if (line.pool_bytes <= 0) {
        judgement.saw(files.rank);
        continue;
      }
      judgement.defect(
          {.rank = files.rank,
           .step = std::nullopt,
           .what = concat("a failed capture in arm ", line.arm, " left its pool behind"),
           .got = concat(line.pool_bytes, " bytes after reset and empty_cache, code ", line.code),
           .want = "0 bytes",
           .why =
               "a trainer that tries again and again loses memory with each try (pytorch#190348)"});
    }
  }
  return judgement.result(concat("nothing left on ", attempt.ranks.size(), " ranks"),
                          "0 bytes after a failed capture");
}

record::CheckResult pool_order(const Attempt& attempt) {
  Judgement judgement("D35.pool_order", attempt);
  if (!for_trained_graphs(judgement)) return judgement.result("", "");
  for (const RankFiles& files : attempt.ranks) {
    for (const char* arm : graph_arms(attempt))
      if (!judgement.first<ReplayLine>(files, arm))
        judgement.absent<ReplayLine>(files, concat("of arm ", arm));
    for (const ReplayLine& line : judgement.lines<ReplayLine>(files)) {
      if (line.out_of_order == 0) {
        judgement.saw(files.rank);
        continue;
      }
      judgement.defect(
          {.rank = files.rank,
           .step = line.step,
           .what =
               concat("graphs of one pool ran in another order than they were captured, in arm ",
                      line.arm),
           .got = concat(shown(line.out_of_order), " launches out of order"),
           .want = "0",
           .why = "the memory of an output that is still needed belongs to another graph by then"});
    }
  }
  return judgement.result(concat("in the order of capture on ", attempt.ranks.size(), " ranks"),
                          "0 launches out of order");
}

record::CheckResult warmed_up(const Attempt& attempt) {
  Judgement judgement("D37.warmed_up", attempt);
  if (!for_trained_graphs(judgement)) return judgement.result("", "");
  const std::int64_t asked = judgement.expected().warmup_steps;
  // An engine that records its first step runs the optimizer once before its capture, after that
  // step; its modules are warmed up on their own.
  const std::string impl = attempt.axes.text("impl");
  const bool one_eager_step = engines::traits_of(impl).records_first_step;
  if (asked == 0) judgement.unexercised("the case asks for no warm-up (axis warmup_steps)");
  for (const RankFiles& files : attempt.ranks) {
    for (const CaptureLine& capture : judgement.lines<CaptureLine>(files)) {
      const std::int64_t wanted = one_eager_step && capture.graph == "optimizer" ? 1 : asked;
      // An engine's word, and what the layers themselves counted on the device in the eager steps
      // before.
      const std::int64_t steps = one_eager_step ? 1 : asked,
                         forwards = steps * judgement.expected().forwards_per_step;
      const std::vector<std::int64_t>& counted = capture.counter_before;
      const bool ran = !counted.empty() && std::ranges::all_of(counted, [&](std::int64_t layer) {
        return layer >= forwards;
      });
      if (capture.warmups.value_or(-1) >= wanted && ran) {
        judgement.saw(files.rank);
        continue;
      }
      if (!ran) {
        judgement.defect(
            {.rank = files.rank,
             .step = std::nullopt,
             .what = concat("layers had not run before ", capture_name(capture), " was captured"),
             .got = concat("forwards of each layer by then: ", shown(counted)),
             .want = concat(forwards, " at least: ", steps,
                            steps == 1 ? " eager step" : " eager steps"),
             .why = "the engine says that it warmed up, and what a first run makes ends up in the "
                    "graph or breaks the capture"});
        continue;
      }
      judgement.defect(
          {.rank = files.rank,
           .step = std::nullopt,
           .what = concat(capture_name(capture), " was captured before its work had run"),
           .got = concat(shown(capture.warmups), " warm-up runs"),
           .want = wanted == asked ? concat(asked, ", as axis warmup_steps says")
                                   : concat(wanted, ", the eager step of ", impl),
           .why = "what a first run makes, tables, library handles, algorithm choices, ends up in "
                  "the graph or breaks the capture"});
    }
    for (const char* arm : graph_arms(attempt))
      if (!judgement.first<CaptureLine>(files, arm))
        judgement.absent<CaptureLine>(files, concat("of arm ", arm));
  }
  return judgement.result(
      concat(asked, " runs before each capture on ", attempt.ranks.size(), " ranks"),
      concat(asked, " at least"));
}

record::CheckResult modules_warmed_up(const Attempt& attempt) {
  Judgement judgement("D37.modules_warmed_up", attempt);
  if (!for_trained_graphs(judgement)) return judgement.result("", "");
  const std::string impl = attempt.axes.text("impl");
  const Expected& expected = judgement.expected();
  const engines::EngineTraits& engine = engines::traits_of(impl);
  if (!engine.captures_modules())
    judgement.not_applicable(concat("impl ", impl, " captures no modules"));
  if (judgement.settled()) return judgement.result("", "");
  if (expected.warmup_steps == 0)
    judgement.unexercised("the case asks for no warm-up (axis warmup_steps)");
  for (const RankFiles& files : attempt.ranks) {
    for (const char* arm : graph_arms(attempt)) {
      const auto captures = judgement.find<CaptureLine>(files, arm);
      if (std::ranges::none_of(captures, [](const CaptureLine* capture) {
            return capture->module_runs.has_value();
          }))
        judgement.absent<CaptureLine>(files, concat("with `module_runs` of arm ", arm));
    }
    for (const CaptureLine& capture : judgement.lines<CaptureLine>(files)) {
      const auto& runs = capture.module_runs;
      if (!runs) continue;  // of a whole step, an optimizer or a backward
      // A recorded step is no warm-up; the eager steps of the other engines are.
      const std::int64_t recorded = engine.records_first_step ? expected.forwards_per_step : 0;
      const std::int64_t reported = capture.warmups.value_or(0), wanted = recorded + reported;
      if (reported > 0 && runs->forwards >= wanted && runs->backwards >= wanted) {
        judgement.saw(files.rank);
        continue;
      }
      judgement.defect(
          {.rank = files.rank,
           .step = std::nullopt,
           .what = concat("the module of ", capture_name(capture),
                          " had run more rarely before its capture than the engine says"),
           .got = concat(runs->forwards, " forwards, ", runs->backwards, " backwards"),
           .want =
               concat(wanted, " of each at least: ", reported, " warm-ups",
                      recorded > 0 ? concat(" behind ", recorded, " in the recorded step") : ""),
           .why = "what a first run makes, tables, library handles, algorithm choices, ends up in "
                  "the graph or breaks the capture"});
    }
  }
  return judgement.result(
      concat("counted by the modules themselves on ", attempt.ranks.size(), " ranks"),
      "as often as the engine says");
}

record::CheckResult idle_when_dropped(const Attempt& attempt) {
  Judgement judgement("D29.idle_when_dropped", attempt);
  if (!for_trained_graphs(judgement)) return judgement.result("", "");
  for (const RankFiles& files : attempt.ranks) {
    const auto steps = judgement.lines<TeardownLine>(files);
    const auto graphs = std::ranges::find(steps, "graphs", &TeardownLine::step);
    if (graphs == steps.end()) {
      judgement.absent<TeardownLine>(files, "of the graphs");
    } else if (graphs->in_flight == 0) {
      judgement.saw(files.rank);
    } else {
      judgement.defect(
          {.rank = files.rank,
           .step = std::nullopt,
           .what = concat("rank ", files.rank, " dropped graphs that the device was still running"),
           .got = concat(shown(graphs->in_flight), " replays in flight"),
           .want = "0: wait for the last replay first",
           .why = "the memory of a running replay goes to whoever allocates next"});
    }
  }
  // Of graphs that made room for others (axis shape_buckets): a wait between the steps would hide
  // it, so one run has none.
  for (const RankFiles& files : attempt.ranks) {
    if (attempt.axes.integer("shape_buckets") == 0) break;
    for (const char* run : {"buckets", "buckets_free_run"}) {
      const auto lines = judgement.lines<EvictionsLine>(files);
      const auto line = std::ranges::find(lines, run, &EvictionsLine::run);
      if (line == lines.end()) {
        judgement.absent<EvictionsLine>(files, concat("of ", run));
      } else if (line->in_flight != 0) {
        judgement.defect(
            {.rank = files.rank,
             .step = line->step,
             .what =
                 concat("rank ", files.rank, " evicted graphs that the device was still running"),
             .got = concat(line->in_flight, " replays in flight"),
             .want = "0: wait for the last replay first",
             .why = "the memory of a running replay goes to the graphs that are captured next"});
      }
    }
  }
  return judgement.result(concat("idle on ", attempt.ranks.size(), " ranks"),
                          "no replay in flight");
}

}  // namespace graphproof::checks

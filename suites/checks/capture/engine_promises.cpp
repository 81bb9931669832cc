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

namespace graphproof::checks {
namespace {

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
      if (!files.first("freed", "lockstep_graph", step))
        judgement.absent(files, "`freed` line of arm lockstep_graph", step);
    for (const Line* line : files.find("freed")) {
      const nlohmann::json& freed = field(*line, "freed");
      const std::int64_t operands = integer(*line, "operands").value_or(0);
      if (freed.is_array() && freed.empty() && operands > 0) {
        judgement.saw(files.rank);
        continue;
      }
      const bool known = freed.is_array() && !freed.empty();
      judgement.defect(
          {.rank = files.rank,
           .step = integer(*line, "step"),
           .what = concat("a graph of arm ", text(*line, "arm"),
                          " is about to touch memory that was freed after its capture"),
           .got = known ? concat(freed.front().is_string() ? freed.front().get<std::string>()
                                                           : freed.front().dump(),
                                 ", and ", freed.size() - 1, " more")
                        : concat(operands, " blocks looked at, freed: ", freed.dump()),
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
          !files.first("kept", "lockstep_graph", step))
        judgement.absent(files, "`kept` line of arm lockstep_graph", step);
    for (const Line* line : files.find("kept")) {
      const std::string then = text(*line, "digest"), later = text(*line, "later");
      if (!then.empty() && then == later) {
        judgement.saw(files.rank);
        continue;
      }
      const auto step = integer(*line, "step");
      judgement.defect(
          {.rank = files.rank,
           .step = step,
           .what = concat("the ", text(*line, "what"), " that arm ", text(*line, "arm"),
                          " handed out in step ", step.value_or(-1), " changed in the next step"),
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
  std::map<std::pair<std::string, std::int64_t>, std::pair<int, const Line*>> first;
  for (const RankFiles& files : attempt.ranks) {
    const auto lines = files.find("replay");
    if (lines.empty()) judgement.absent(files, "`replay` line");
    for (const Line* line : lines) {
      const auto step = integer(*line, "step");
      const auto& [rank, other] =
          first.try_emplace({text(*line, "arm"), step.value_or(-1)}, files.rank, line)
              .first->second;
      if (field(*line, "replays") == field(*other, "replays") &&
          field(*line, "fallbacks") == field(*other, "fallbacks") && integer(*line, "replays")) {
        judgement.saw(files.rank);
        continue;
      }
      judgement.defect(
          {.rank = files.rank,
           .step = step,
           .what = concat("ranks ", rank, " and ", files.rank,
                          " did not take the same way through step ", step.value_or(-1), " of arm ",
                          text(*line, "arm")),
           .got = concat(field(*line, "replays").dump(), " launches, ",
                         field(*line, "fallbacks").dump(), " fallbacks"),
           .want = concat(field(*other, "replays").dump(), " launches, ",
                          field(*other, "fallbacks").dump(), " fallbacks, as rank ", rank),
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
  const bool any = std::ranges::any_of(
      attempt.ranks, [](const RankFiles& files) { return files.first("failed_capture"); });
  if (!any) judgement.not_applicable("no capture failed and was taken back");
  if (judgement.settled()) return judgement.result("", "");
  for (const RankFiles& files : attempt.ranks) {
    for (const Line* line : files.find("failed_capture")) {
      const auto bytes = integer(*line, "pool_bytes");
      if (bytes && *bytes <= 0) {
        judgement.saw(files.rank);
        continue;
      }
      judgement.defect(
          {.rank = files.rank,
           .step = integer(*line, "step"),
           .what = concat("a failed capture in arm ", text(*line, "arm"), " left its pool behind"),
           .got = concat(field(*line, "pool_bytes").dump(),
                         " bytes after reset and empty_cache, code ", field(*line, "code").dump()),
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
      if (!files.first("replay", arm))
        judgement.absent(files, concat("`replay` line of arm ", arm));
    for (const Line* line : files.find("replay")) {
      if (integer(*line, "out_of_order") == 0) {
        judgement.saw(files.rank);
        continue;
      }
      judgement.defect(
          {.rank = files.rank,
           .step = integer(*line, "step"),
           .what =
               concat("graphs of one pool ran in another order than they were captured, in arm ",
                      text(*line, "arm")),
           .got = concat(field(*line, "out_of_order").dump(), " launches out of order"),
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
  // Of local the optimizer runs once before its capture, behind the one eager step; its modules are
  // warmed up on their own.
  const bool one_eager_step = attempt.axes.text("impl") == "local";
  if (asked == 0) judgement.unexercised("the case asks for no warm-up (axis warmup_steps)");
  for (const RankFiles& files : attempt.ranks) {
    for (const Line* capture : files.find("capture")) {
      const std::int64_t wanted =
          one_eager_step && text(*capture, "graph") == "optimizer" ? 1 : asked;
      // An engine's word, and what the layers themselves counted on the device in the eager steps
      // before.
      const std::int64_t steps = one_eager_step ? 1 : asked,
                         forwards = steps * judgement.expected().forwards_per_step;
      const nlohmann::json& counted = field(*capture, "counter_before");
      const bool ran = counted.is_array() && !counted.empty() &&
                       std::ranges::all_of(counted, [&](const nlohmann::json& layer) {
                         return layer.is_number_integer() && layer.get<std::int64_t>() >= forwards;
                       });
      if (integer(*capture, "warmups").value_or(-1) >= wanted && ran) {
        judgement.saw(files.rank);
        continue;
      }
      if (!ran) {
        judgement.defect(
            {.rank = files.rank,
             .step = integer(*capture, "step"),
             .what = concat("layers had not run before ", capture_name(*capture), " was captured"),
             .got = concat("forwards of each layer by then: ", counted.dump()),
             .want = concat(forwards, " at least: ", steps,
                            steps == 1 ? " eager step" : " eager steps"),
             .why = "the engine says that it warmed up, and what a first run makes ends up in the "
                    "graph or breaks the capture"});
        continue;
      }
      judgement.defect(
          {.rank = files.rank,
           .step = integer(*capture, "step"),
           .what = concat(capture_name(*capture), " was captured before its work had run"),
           .got = concat(field(*capture, "warmups").dump(), " warm-up runs"),
           .want = wanted == asked ? concat(asked, ", as axis warmup_steps says")
                                   : concat(wanted, ", the eager step of local"),
           .why = "what a first run makes, tables, library handles, algorithm choices, ends up in "
                  "the graph or "
                  "breaks the capture"});
    }
    for (const char* arm : graph_arms(attempt))
      if (!files.first("capture", arm))
        judgement.absent(files, concat("`capture` line of arm ", arm));
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
  if (impl != "local" && impl != "transformer_engine" && impl != "callables")
    judgement.not_applicable(concat("impl ", impl, " captures no modules"));
  if (judgement.settled()) return judgement.result("", "");
  if (expected.warmup_steps == 0)
    judgement.unexercised("the case asks for no warm-up (axis warmup_steps)");
  for (const RankFiles& files : attempt.ranks) {
    for (const char* arm : graph_arms(attempt)) {
      const auto captures = files.find("capture", arm);
      if (std::ranges::none_of(captures, [](const Line* capture) {
            return field(*capture, "module_runs").is_object();
          }))
        judgement.absent(files, concat("`capture` line with `module_runs` of arm ", arm));
    }
    for (const Line* capture : files.find("capture")) {
      const nlohmann::json& runs = field(*capture, "module_runs");
      if (!runs.is_object()) continue;  // of a whole step, an optimizer or a backward
      const auto counted = [&runs](const char* direction) {
        const auto found = runs.find(direction);
        return found != runs.end() && found->is_number_integer() ? found->get<std::int64_t>() : -1;
      };
      const std::int64_t forwards = counted("forwards"), backwards = counted("backwards");
      // The recorded step of local is no warm-up; of the others the eager steps are.
      const std::int64_t recorded = impl == "local" ? expected.forwards_per_step : 0;
      const std::int64_t said = integer(*capture, "warmups").value_or(0), wanted = recorded + said;
      if (said > 0 && forwards >= wanted && backwards >= wanted) {
        judgement.saw(files.rank);
        continue;
      }
      judgement.defect(
          {.rank = files.rank,
           .step = integer(*capture, "step"),
           .what = concat("the module of ", capture_name(*capture),
                          " had run more rarely before its capture than the engine says"),
           .got = concat(forwards, " forwards, ", backwards, " backwards"),
           .want =
               concat(wanted, " of each at least: ", said, " warm-ups",
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
    const auto steps = files.find("teardown");
    const auto graphs =
        std::ranges::find_if(steps, [](const Line* line) { return is(*line, "step", "graphs"); });
    if (graphs == steps.end()) {
      judgement.absent(files, "`teardown` line of the graphs");
    } else if (integer(**graphs, "in_flight") == 0) {
      judgement.saw(files.rank);
    } else {
      judgement.defect(
          {.rank = files.rank,
           .step = std::nullopt,
           .what = concat("rank ", files.rank, " dropped graphs that the device was still running"),
           .got = concat(field(**graphs, "in_flight").dump(), " replays in flight"),
           .want = "0: wait for the last replay first",
           .why = "the memory of a running replay goes to whoever allocates next"});
    }
  }
  // Of graphs that made room for others (axis shape_buckets): a wait between the steps would hide
  // it, so one run has none.
  for (const RankFiles& files : attempt.ranks) {
    if (attempt.axes.integer("shape_buckets") == 0) break;
    for (const char* subject : {"buckets", "buckets_free_run"}) {
      const auto lines = files.find("evictions");
      const auto line = std::ranges::find_if(
          lines, [&](const Line* one) { return is(*one, "subject", subject); });
      if (line == lines.end()) {
        judgement.absent(files, concat("`evictions` line of ", subject));
      } else if (integer(**line, "in_flight") != 0) {
        judgement.defect(
            {.rank = files.rank,
             .step = integer(**line, "step"),
             .what =
                 concat("rank ", files.rank, " evicted graphs that the device was still running"),
             .got = concat(field(**line, "in_flight").dump(), " replays in flight"),
             .want = "0: wait for the last replay first",
             .why = "the memory of a running replay goes to the graphs that are captured next"});
      }
    }
  }
  return judgement.result(concat("idle on ", attempt.ranks.size(), " ranks"),
                          "no replay in flight");
}

}  // namespace graphproof::checks

// D37: the captured work had run before its capture. Three counts show it: the engine's, those of
// the layers on the device, and those of modules that are captured alone.
#include <algorithm>

#include "suites/checks/attempt/arms.h"
#include "suites/checks/attempt/capture.h"
#include "suites/checks/attempt/concat.h"
#include "suites/checks/attempt/judgement.h"
#include "workloads/engine_traits/engine_traits.h"

namespace graphproof::checks::d37 {

using record::CaptureLine;

/// Before each capture the captured work ran as often as axis warmup_steps asks, by the engine's
/// count, and each layer had as many forward passes by its counter on the device.
record::CheckResult warmed_up(Judgement& judgement, const Attempt& attempt) {
  if (!judgement.has_replays()) return judgement.result("", "");
  const std::int64_t asked = judgement.expected().warmup_steps;
  // An engine that records its first step runs the optimizer once before its capture, after that
  // step; its modules are warmed up on their own.
  const std::string impl = attempt.axes.text("impl");
  const bool one_eager_step = engines::traits_of(impl).records_first_step;
  if (asked == 0) judgement.unexercised("the case asks for no warm-up (axis warmup_steps)");
  for (const RankFiles& files : attempt.ranks) {
    for (const CaptureLine& capture : judgement.lines<CaptureLine>(files)) {
      const std::int64_t wanted = one_eager_step && capture.graph == "optimizer" ? 1 : asked;
      // The counters on the device confirm the engine's count of eager steps.
      const std::int64_t steps = one_eager_step ? 1 : asked,
                         forwards = steps * judgement.expected().forwards_per_step;
      const std::vector<std::int64_t>& counted = capture.counter_before;
      const bool ran = !counted.empty() && std::ranges::all_of(counted, [&](std::int64_t layer) {
        return layer >= forwards;
      });
      if (capture.warmups.value_or(-1) >= wanted && ran) {
        judgement.confirm(files.rank);
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
             .why =
                 "the engine reports a warm-up that did not happen, so that the set-up of a first "
                 "run gets into the graph or breaks the capture"});
        continue;
      }
      judgement.defect(
          {.rank = files.rank,
           .step = std::nullopt,
           .what = concat(capture_name(capture), " was captured before its work had run"),
           .got = concat(shown(capture.warmups), " warm-up runs"),
           .want = wanted == asked ? concat(asked, ", by axis warmup_steps")
                                   : concat(wanted, ", the eager step of ", impl),
           .why =
               "the set-up of a first run (tables, library handles, algorithm choices) gets into "
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

/// Every module that is captured alone had run forward and backward before as often as the engine
/// reports, by the module's own count.
record::CheckResult modules_warmed_up(Judgement& judgement, const Attempt& attempt) {
  if (!judgement.has_replays()) return judgement.result("", "");
  const engines::EngineTraits& engine = engines::traits_of(attempt.axes.text("impl"));
  const Expected& expected = judgement.expected();
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
      if (!runs) continue;  // a capture of a whole step, an optimizer or a backward
      // A recorded step does not count as a warm-up; the eager steps of the other engines do.
      const std::int64_t recorded = engine.records_first_step ? expected.forwards_per_step : 0;
      const std::int64_t reported = capture.warmups.value_or(0), wanted = recorded + reported;
      // The parts of a frozen encoder have no backward.
      const bool frozen =
          attempt.axes.flag("freeze_vision_model") && engines::of_vision_encoder(capture.graph);
      if (reported > 0 && runs->forwards >= wanted && (frozen || runs->backwards >= wanted)) {
        judgement.confirm(files.rank);
        continue;
      }
      judgement.defect(
          {.rank = files.rank,
           .step = std::nullopt,
           .what = concat("the module of ", capture_name(capture),
                          " had run less often before its capture than the engine reports"),
           .got = concat(runs->forwards, " forwards, ", runs->backwards, " backwards"),
           .want = concat(wanted, " of each at least: ", reported, " warm-ups",
                          recorded > 0 ? concat(" after ", recorded, " in the recorded step") : ""),
           .why =
               "the set-up of a first run (tables, library handles, algorithm choices) gets into "
               "the graph or breaks the capture"});
    }
  }
  return judgement.result(
      concat("counted by the modules themselves on ", attempt.ranks.size(), " ranks"),
      "as often as the engine reports");
}

}  // namespace graphproof::checks::d37

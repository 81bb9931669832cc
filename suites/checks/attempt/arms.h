// Which arms a case leaves evidence of, as its axes and the revision of the evidence say.
#pragma once

#include <algorithm>
#include <string_view>
#include <vector>

#include "suites/checks/attempt/attempt.h"
#include "suites/checks/attempt/expected.h"

namespace graphproof::checks {

/// The second runs, which have to repeat the first eager one and the lockstep graph.
struct ControlArms {
  const char *eager, *graph;
  bool solo;  // they are the solo arms, which nothing looks at within a step
};
/// Of collectives alone, and of steps before revision 5, they are arms that nothing else was asked
/// of.
inline ControlArms control_arms(const Axes& axes, std::int64_t revision) {
  if (revision < 5 || axes.text("model") == "collective") return {"eager_b", "graph_b", false};
  return {"solo_eager", "solo_graph", true};
}
inline ControlArms control_arms(const Attempt& attempt) {
  return control_arms(attempt.axes, evidence_revision(attempt));
}

/// The arms that capture. Nothing looks at the last two within a step.
inline std::vector<const char*> graph_arms(const Attempt& attempt) {
  std::vector<const char*> arms = {"lockstep_graph"};
  if (const ControlArms control = control_arms(attempt); !control.solo)
    arms.push_back(control.graph);
  arms.push_back("free_graph");
  if (evidence_revision(attempt) >= 2 && attempt.axes.text("model") != "collective")
    arms.push_back("solo_graph");
  return arms;
}

/// Whose lines stand for the whole run, because a look after each step would have waited for it.
inline bool runs_free(std::string_view arm) { return arm == "free_graph" || arm == "solo_graph"; }

/// A replay that an arm leaves lines about.
struct WatchedReplay {
  std::string_view arm;
  std::int64_t step;
};
/// Of every graph arm that does not run free. Only lockstep_graph has a step for the last inputs.
inline std::vector<WatchedReplay> watched_replays(const Attempt& attempt,
                                                  const Expected& expected) {
  std::vector<WatchedReplay> result;
  for (const std::string_view arm : graph_arms(attempt)) {
    if (runs_free(arm)) continue;
    const std::int64_t last =
        arm == "lockstep_graph" ? expected.last_inputs_step : expected.steps - 1;
    for (std::int64_t step = expected.first_replay; step <= last; ++step)
      result.push_back({arm, step});
  }
  return result;
}

/// The steps that are looked at one by one, in one arm: the replays of lockstep_graph, because
/// replays are what can freeze a value, or every step of eager_a in a case without graphs.
struct WatchedSteps {
  explicit WatchedSteps(const Expected& expected)
      : arm(expected.graph ? "lockstep_graph" : "eager_a"),
        first(expected.graph ? expected.first_replay : 0),
        last(expected.graph ? expected.last_inputs_step : expected.steps - 1) {}
  std::int64_t count() const { return last - first + 1; }

  std::string_view arm;
  std::int64_t first, last;
};

/// The first step of a solo arm whose time counts: the second one after the capture, and of an arm
/// whose first steps are copied to the host and compared also the second one after these. A step
/// right after a copy finds cold caches.
inline std::int64_t first_timed_step(const Attempt& attempt, const Expected& expected) {
  const std::int64_t steady = expected.first_replay + 2;
  return control_arms(attempt).solo ? std::max(steady, expected.steps + 1) : steady;
}

/// How many steps a solo arm runs at least: two to settle behind the warm-up and seven for a trend;
/// since its first steps are copied and compared, also one to settle behind these and three whose
/// time counts. More in runs of revision 2.
inline std::int64_t solo_steps(const Attempt& attempt, const Expected& expected) {
  const std::int64_t steady = expected.first_replay + 9;
  return control_arms(attempt).solo ? std::max(steady, expected.steps + 4) : steady;
}

}  // namespace graphproof::checks

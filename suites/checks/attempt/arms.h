// Which arms a case has evidence of. It follows from the case's axes and the evidence's revision.
#pragma once

#include <algorithm>
#include <string_view>
#include <vector>

#include "suites/checks/attempt/attempt.h"
#include "suites/checks/attempt/expected.h"

namespace graphproof::checks {

/// The arms that repeat arm eager_a and arm lockstep_graph, so that a difference between two runs
/// of the same arm shows.
struct ControlArms {
  const char *eager, *graph;
  bool solo;  // whether they are the solo arms, whose steps run undisturbed by other arms
};
/// The solo arms; of a case that does not train and in evidence below revision 5 eager_b and
/// graph_b, which serve no other purpose.
inline ControlArms control_arms(const Axes& axes, std::int64_t revision) {
  if (revision < 5 || !trains(axes)) return {"eager_b", "graph_b", false};
  return {"solo_eager", "solo_graph", true};
}
inline ControlArms control_arms(const Attempt& attempt) {
  return control_arms(attempt.axes, evidence_revision(attempt));
}

/// The arms that capture graphs, in the order in which they run. Only the steps of the first ones
/// are inspected one by one, see runs_free().
inline std::vector<const char*> graph_arms(const Attempt& attempt) {
  std::vector<const char*> arms = {"lockstep_graph"};
  if (const ControlArms control = control_arms(attempt); !control.solo)
    arms.push_back(control.graph);
  arms.push_back("free_graph");
  if (evidence_revision(attempt) >= 2 && trains(attempt.axes)) arms.push_back("solo_graph");
  if (trains(attempt.axes) && attempt.axes.text("perf_limit") != "none")
    arms.push_back("paired_graph");
  return arms;
}

/// Whether this arm is that of the rollouts of another one. Its graphs are those of inference.
inline bool rolls_out(std::string_view arm) { return arm.ends_with("_rollout"); }

/// Whether a line of this arm describes its whole run. To inspect each step, the host would have to
/// wait for it, and these arms must not wait.
inline bool runs_free(std::string_view arm) {
  return arm == "free_graph" || arm == "solo_graph" || arm == "paired_graph";
}

/// A replay that has evidence lines of its own.
struct WatchedReplay {
  std::string_view arm;
  std::int64_t step;
};
/// Every replay of the graph arms that do not run free. Only lockstep_graph has the extra step that
/// repeats the inputs of the capture.
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

/// The steps of one arm that are inspected one by one: the replays of lockstep_graph, because a
/// replay is what can use a stale value, or every step of eager_a in a case without graphs.
struct WatchedSteps {
  explicit WatchedSteps(const Expected& expected)
      : arm(expected.graph ? "lockstep_graph" : "eager_a"),
        first(expected.graph ? expected.first_replay : 0),
        last(expected.graph ? expected.last_inputs_step : expected.steps - 1) {}
  std::int64_t count() const { return last - first + 1; }

  std::string_view arm;
  std::int64_t first, last;
};

/// The first step of a solo arm whose time counts: the second one after the capture. In an arm
/// whose first steps are copied to the host and compared, it is also at least the second one after
/// those, because the caches are cold in a step right after a copy.
inline std::int64_t first_timed_step(const Attempt& attempt, const Expected& expected) {
  const std::int64_t steady = expected.first_replay + 2;
  return control_arms(attempt).solo ? std::max(steady, expected.steps + 1) : steady;
}

/// The least number of steps that a solo arm runs: two after the warm-up until times are steady and
/// seven for a trend. Where its first steps are copied and compared, also at least one until times
/// are steady again and three whose time counts. Evidence of revision 2 has more.
inline std::int64_t solo_steps(const Attempt& attempt, const Expected& expected) {
  const std::int64_t steady = expected.first_replay + 9;
  return control_arms(attempt).solo ? std::max(steady, expected.steps + 4) : steady;
}

}  // namespace graphproof::checks

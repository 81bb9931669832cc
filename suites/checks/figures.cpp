#include "suites/checks/figures.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "suites/checks/attempt/arms.h"
#include "suites/checks/attempt/capture.h"
#include "suites/checks/attempt/expected.h"

namespace graphproof::checks {
namespace {

using Figures = std::map<std::string, double>;

/// Ranks run together, so the slowest one's time counts, and the fullest one's memory.
void add_largest(Figures& figures, const std::string& name, const std::optional<double>& value) {
  if (!value) return;
  const auto [figure, added] = figures.emplace(name, *value);
  if (!added) figure->second = std::max(figure->second, *value);
}

/// Of a field of the arm's lines from step `first` on.
std::optional<double> median(const RankFiles& files, std::string_view kind, std::string_view arm,
                             std::string_view name, std::int64_t first) {
  std::vector<double> values;
  for (const Line* line : files.find(kind, arm)) {
    const auto value = number(*line, name);
    if (value && integer(*line, "step").value_or(-1) >= first) values.push_back(*value);
  }
  if (values.empty()) return std::nullopt;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

/// What the allocator holds more after the arm's last step than before the arm was built.
std::optional<double> held_bytes(const RankFiles& files, std::string_view arm) {
  std::optional<double> before, last;
  for (const Line* line : files.find("memory", arm)) {
    if (is(*line, "when", "before")) before = number(*line, "reserved");
    if (is(*line, "when", "step")) last = number(*line, "reserved");
  }
  if (!before || !last) return std::nullopt;
  return *last - *before;
}

/// What a summary weighs a capture by: one arm alone, in its steady steps that nothing disturbs.
void add_benefit(Figures& figures, const RankFiles& files, const Expected& plan,
                 const Attempt& attempt) {
  const std::int64_t timed = first_timed_step(attempt, plan);
  add_largest(figures, "eager_step_ms", median(files, "timing", "solo_eager", "wall_ms", timed));
  add_largest(figures, "eager_launch_ms",
              median(files, "timing", "solo_eager", "launch_ms", timed));
  const auto busy = median(files, "busy", "solo_eager", "device_ms", timed);
  const auto wall = median(files, "timing", "solo_eager", "wall_ms", timed);
  // Of the rank that is busiest: where it has nothing to gain, nobody has.
  if (busy && wall && *wall > 0)
    add_largest(figures, "eager_busy_share", std::min(1.0, *busy / *wall));
  if (!plan.graph) return;
  add_largest(figures, "graph_step_ms", median(files, "timing", "solo_graph", "wall_ms", timed));
  add_largest(figures, "graph_launch_ms",
              median(files, "timing", "solo_graph", "launch_ms", timed));
  std::optional<double> capture_ms;
  double graphs = 0;
  for (const Line* capture : successful_captures(files)) {
    if (!is(*capture, "arm", "solo_graph")) continue;
    capture_ms = capture_ms.value_or(0) + number(*capture, "ms").value_or(0);
    ++graphs;
  }
  if (capture_ms) {
    add_largest(figures, "capture_seconds", *capture_ms / 1000);
    add_largest(figures, "graphs", graphs);
  }
  const auto eager_bytes = held_bytes(files, "solo_eager"),
             graph_bytes = held_bytes(files, "solo_graph");
  if (eager_bytes && graph_bytes)
    add_largest(figures, "extra_memory_bytes", *graph_bytes - *eager_bytes);
}

/// What an arm spent in a phase, for each of its `steps`.
std::optional<double> phase_step_ms(const RankFiles& files, std::string_view phase,
                                    std::string_view arm, std::int64_t steps) {
  for (const Line* line : files.find("phase", arm)) {
    const auto ms = number(*line, "ms");
    if (ms && text(*line, "phase") == phase && steps > 0) return *ms / static_cast<double>(steps);
  }
  return std::nullopt;
}

}  // namespace

Figures figures(const Attempt& attempt) {
  Figures figures;
  const Expected plan = expected(attempt.axes);
  for (const RankFiles& files : attempt.ranks) {
    if (plan.trains &&
        evidence_revision(attempt) >= 8) {  // steps of eager_a and free_graph are late
      const std::int64_t timed = first_timed_step(attempt, plan);
      add_largest(figures, "eager_ms", median(files, "timing", "solo_eager", "wall_ms", timed));
      if (plan.graph)
        add_largest(figures, "replay_ms", median(files, "timing", "solo_graph", "wall_ms", timed));
    } else if (plan.graph) {
      const auto free_eager_ms = phase_step_ms(files, "eager", "free_eager", plan.steps);
      add_largest(figures, "eager_ms",
                  free_eager_ms ? free_eager_ms
                                : median(files, "timing", "solo_eager", "wall_ms",
                                         first_timed_step(attempt, plan)));
      add_largest(figures, "replay_ms",
                  phase_step_ms(files, "replay", "free_graph", plan.steps - plan.first_replay));
    } else {
      // The first step also pays for set-up.
      add_largest(figures, "eager_ms", median(files, "step", "eager_a", "ms", 1));
    }
    add_benefit(figures, files, plan, attempt);
    for (const Line* capture : successful_captures(files)) {
      add_largest(figures, "capture_ms", number(*capture, "ms"));
      add_largest(figures, "graph_nodes", number(*capture, "nodes"));
      add_largest(figures, "pool_bytes", number(*capture, "pool_bytes"));
    }
  }
  return figures;
}

}  // namespace graphproof::checks

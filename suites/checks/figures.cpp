#include "suites/checks/figures.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "suites/checks/capture.h"
#include "suites/checks/expected.h"

namespace graphproof::checks {
namespace {

using Figures = std::map<std::string, double>;

/// Ranks run together, so the slowest one's time counts, and the fullest one's memory.
void add_largest(Figures& figures, const std::string& name, const std::optional<double>& value) {
  if (!value) return;
  const auto [figure, added] = figures.emplace(name, *value);
  if (!added) figure->second = std::max(figure->second, *value);
}

std::optional<double> median_step_ms(const RankFiles& files, std::string_view arm) {
  std::vector<double> times;
  for (const Line* line : files.find("step", arm)) {
    const auto ms = number(*line, "ms");
    if (ms && integer(*line, "step").value_or(0) > 0) times.push_back(*ms);  // the first step also pays for set-up
  }
  if (times.empty()) return std::nullopt;
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::ranges::nth_element(times, middle);
  return *middle;
}

/// What an arm spent in a phase, for each of its `steps`.
std::optional<double> phase_step_ms(const RankFiles& files, std::string_view phase, std::string_view arm,
                                    std::int64_t steps) {
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
    if (plan.graph) {
      add_largest(figures, "eager_ms", phase_step_ms(files, "eager", "free_eager", plan.steps));
      add_largest(figures, "replay_ms", phase_step_ms(files, "replay", "free_graph", plan.steps - plan.first_replay));
    } else {
      add_largest(figures, "eager_ms", median_step_ms(files, "eager_a"));
    }
    for (const Line* capture : successful_captures(files)) {
      add_largest(figures, "capture_ms", number(*capture, "ms"));
      add_largest(figures, "graph_nodes", number(*capture, "nodes"));
      add_largest(figures, "pool_bytes", number(*capture, "pool_bytes"));
    }
  }
  return figures;
}

}  // namespace graphproof::checks

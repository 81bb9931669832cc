#include "suites/checks/figures.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "suites/checks/attempt/arms.h"
#include "suites/checks/attempt/capture.h"
#include "suites/checks/attempt/expected.h"

namespace graphproof::checks {
namespace {

using record::BusyLine;
using record::CaptureLine;
using record::StepLine;
using record::TimingLine;
using Figures = std::map<std::string, double>;

/// Keeps the largest value over ranks: they wait for the slowest rank, and the one that uses most
/// memory runs out of it first.
void add_largest(Figures& figures, const std::string& name, const std::optional<double>& value) {
  if (!value) return;
  const auto [figure, added] = figures.emplace(name, *value);
  if (!added) figure->second = std::max(figure->second, *value);
}

std::optional<double> median(std::vector<double> values) {
  if (values.empty()) return std::nullopt;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

/// The median of the finite values of a field in the arm's lines of one kind from step `first` on.
template <LineOfStep Line>
std::optional<double> median(const RankFiles& files, std::string_view arm, double Line::* field,
                             std::int64_t first) {
  std::vector<double> values;
  for (const Line* line : files.find<Line>(arm))
    if (std::isfinite(line->*field) && line->step >= first) values.push_back(line->*field);
  return median(std::move(values));
}

/// How much more memory the allocator has reserved after the arm's last step than before the arm
/// was built.
std::optional<double> reserved_bytes(const RankFiles& files, std::string_view arm) {
  std::optional<double> before, last;
  for (const record::MemoryLine* line : files.find<record::MemoryLine>(arm)) {
    if (line->when == "before") before = static_cast<double>(line->reserved);
    if (line->when == "step") last = static_cast<double>(line->reserved);
  }
  if (!before || !last) return std::nullopt;
  return *last - *before;
}

/// The figures by which a summary judges whether graphs are worth it: they are from arms that run
/// alone, in steps whose times are steady.
void add_benefit(Figures& figures, const RankFiles& files, const Expected& plan,
                 const Attempt& attempt) {
  const std::int64_t timed = first_timed_step(attempt, plan);
  add_largest(figures, "eager_step_ms", median(files, "solo_eager", &TimingLine::wall_ms, timed));
  add_largest(figures, "eager_launch_ms",
              median(files, "solo_eager", &TimingLine::launch_ms, timed));
  const auto busy = median(files, "solo_eager", &BusyLine::device_ms, timed);
  const auto wall = median(files, "solo_eager", &TimingLine::wall_ms, timed);
  // The busiest rank decides: if graphs cannot make it faster, they make no rank faster.
  if (busy && wall && *wall > 0)
    add_largest(figures, "eager_busy_share", std::min(1.0, *busy / *wall));
  if (!plan.graph) return;
  add_largest(figures, "graph_step_ms", median(files, "solo_graph", &TimingLine::wall_ms, timed));
  add_largest(figures, "graph_launch_ms",
              median(files, "solo_graph", &TimingLine::launch_ms, timed));
  add_largest(figures, "graph_busy_ms", median(files, "solo_graph", &BusyLine::device_ms, timed));
  std::optional<double> capture_ms;
  double graphs = 0;
  for (const CaptureLine* capture : files.find<CaptureLine>("solo_graph")) {
    if (!succeeded(*capture)) continue;
    capture_ms = capture_ms.value_or(0) + capture->ms;
    ++graphs;
  }
  if (capture_ms) {
    add_largest(figures, "capture_seconds", *capture_ms / 1000);
    add_largest(figures, "graphs", graphs);
  }
  const auto eager_bytes = reserved_bytes(files, "solo_eager"),
             graph_bytes = reserved_bytes(files, "solo_graph");
  if (eager_bytes && graph_bytes)
    add_largest(figures, "extra_memory_bytes", *graph_bytes - *eager_bytes);
}

/// The time that an arm spent in a phase, divided by its number of steps.
std::optional<double> phase_step_ms(const RankFiles& files, record::Phase phase,
                                    std::string_view arm, std::int64_t steps) {
  for (const record::PhaseLine* line : files.find<record::PhaseLine>(arm))
    if (line->phase == phase && steps > 0) return line->ms / static_cast<double>(steps);
  return std::nullopt;
}

}  // namespace

Figures figures(const Attempt& attempt) {
  Figures figures;
  const Expected plan = expected(attempt.axes);
  for (const RankFiles& files : attempt.ranks) {
    // From revision 8 on, work of eager_a and free_graph is delayed on purpose, so that their times
    // mean nothing.
    if (plan.trains && evidence_revision(attempt) >= 8) {
      const std::int64_t timed = first_timed_step(attempt, plan);
      add_largest(figures, "eager_ms", median(files, "solo_eager", &TimingLine::wall_ms, timed));
      if (plan.graph)
        add_largest(figures, "replay_ms", median(files, "solo_graph", &TimingLine::wall_ms, timed));
    } else if (plan.graph) {
      const auto free_eager_ms =
          phase_step_ms(files, record::Phase::eager, "free_eager", plan.steps);
      add_largest(figures, "eager_ms",
                  free_eager_ms ? free_eager_ms
                                : median(files, "solo_eager", &TimingLine::wall_ms,
                                         first_timed_step(attempt, plan)));
      add_largest(figures, "replay_ms",
                  phase_step_ms(files, record::Phase::replay, "free_graph",
                                plan.steps - plan.first_replay));
    } else {
      // The first step is left out, because it includes set-up.
      add_largest(figures, "eager_ms", median(files, "eager_a", &StepLine::ms, 1));
    }
    add_benefit(figures, files, plan, attempt);
    for (const CaptureLine& capture : files.lines<CaptureLine>()) {
      if (!succeeded(capture)) continue;
      add_largest(figures, "capture_ms", capture.ms);
      add_largest(figures, "graph_nodes", static_cast<double>(capture.nodes));
      add_largest(figures, "pool_bytes", static_cast<double>(capture.pool_bytes));
    }
  }
  return figures;
}

}  // namespace graphproof::checks

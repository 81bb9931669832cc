// What a graph was worth in each case: step time with and without, what capturing cost, and after
// how many steps it has paid for itself. A capture is no speed-up until this says so.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "reports/outcome/run_result.h"

namespace graphproof::reports {

/// Above this share of an eager step the GPU is busy already, and a graph can only take the host
/// out of what is left.
inline constexpr double kBusyShare = 0.95;

struct Benefit {
  std::string case_id, name;
  double eager_ms = 0, graph_ms = 0;  // of a step; the slowest rank's
  std::optional<double> launch_ms;    // of it, the host's part with the graph
  std::optional<double> busy_share;   // of an eager step, the GPU's
  double capture_ms = 0;              // of all graphs of a rank
  int graphs = 0;
  std::int64_t extra_bytes = 0;  // held by the graphs beside what eager needs
  /// Steps after which capture time has come back; nothing where a step does not get faster.
  std::optional<double> break_even_steps;
  /// gain, none, or not expected (the GPU is above kBusyShare busy without a graph).
  std::string meaning;
};

/// A row for each case that passed and has both step times, in plan order. Cases that did not pass
/// have none: how fast a wrong graph is says nothing.
std::vector<Benefit> benefits(const RunResult& run);

nlohmann::json to_json(const Benefit& benefit);

}  // namespace graphproof::reports

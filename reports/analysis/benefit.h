// The benefit of graphs in each case: the time of a step with and without them, the time of the
// captures, and the number of steps after which the captures have paid for themselves.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "reports/outcome/run_result.h"

namespace graphproof::reports {

/// If the GPU is busy for more than this share of an eager step, a graph can gain little: it only
/// removes the time in which the GPU waits for the host.
inline constexpr double kBusyShare = 0.95;

/// The figures of one case. Times of steps are those of the slowest rank.
struct Benefit {
  std::string case_id, name;
  double eager_ms = 0, graph_ms = 0;  // of a step
  std::optional<double> launch_ms;    // the part of graph_ms that the host spends on launches
  std::optional<double> busy_share;   // the part of an eager step in which the GPU works, 0 to 1
  double capture_ms = 0;              // of all graphs of a rank together
  int graphs = 0;                     // of a rank
  std::int64_t extra_bytes = 0;       // that the graphs hold in addition to the memory of eager
  /// Steps after which the captures have paid for themselves; absent if steps are not faster.
  std::optional<double> break_even_steps;
  /// gain, none, or not expected (without a graph the GPU is busy for more than kBusyShare).
  std::string meaning;
};

/// One row for each case that passed and has both step times, in plan order. The speed of a graph
/// that computes something else is no benefit, so cases that did not pass have no row.
std::vector<Benefit> benefits(const RunResult& run);

/// The cases that have one value of an axis, together.
struct AxisBenefit {
  std::string axis;
  nlohmann::json value;
  int cases = 0;
  /// The time of an eager step by that of a graph step: median, least and largest over the cases.
  double speed_up = 0, least = 0, largest = 0;
  std::int64_t extra_bytes = 0;  // median
};

/// The rows of benefits(run) by axis and value, for each axis of which they have two values or
/// more. Axes stand in the order of the largest ratio between the medians of two of their values,
/// and values in the order of their medians, largest first. Cases with another value of an axis may
/// differ in other axes as well.
std::vector<AxisBenefit> benefits_by_axis(const RunResult& run);

nlohmann::json to_json(const Benefit& benefit);
nlohmann::json to_json(const AxisBenefit& benefit);

}  // namespace graphproof::reports

// Limits on measured quantities, as a matrix file states them: `graph_step <= 1.02 * eager_step`.
// The values of the axes perf_limit and memory_limit are such texts. They have the syntax of
// expressions, but compare numbers with decimals that are known only after a run.
//
//   graph_step <= 1.02 * eager_step          eager_step >= 1.5 * graph_step and graph_launch <= 0.5
//   graph_peak <= (1.2 + 0.1 * microbatches) * eager_peak          graph_peak <= eager_peak + 4 *
//   GiB
//
// Comparisons are joined with `and`. A side has numbers, quantities, integer axes, MiB and GiB,
// joined by + - * / and parentheses.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "matrix/case/axes.h"
#include "matrix/expression/syntax.h"

namespace graphproof::matrix {

/// The names that a limit on times may have: milliseconds of a step, until the device has finished
/// it and until the host has enqueued it, without and with graphs.
inline constexpr std::string_view kTimeQuantities[] = {"eager_step", "graph_step", "eager_launch",
                                                       "graph_launch"};
/// The names that a limit on memory may have: bytes that the allocator reserved at most for the job
/// (peak), and that the driver counts on the device for it (device), without and with graphs.
inline constexpr std::string_view kMemoryQuantities[] = {"eager_peak", "graph_peak", "eager_device",
                                                         "graph_device"};

/// The axes whose values are limits, with the names that these may have.
struct LimitAxis {
  std::string_view axis;
  std::span<const std::string_view> quantities;
};
inline constexpr LimitAxis kLimitAxes[] = {{"perf_limit", kTimeQuantities},
                                           {"memory_limit", kMemoryQuantities}};
/// The value of these axes in a case without a limit.
inline constexpr std::string_view kNoLimit = "none";

/// Returns the number that a quantity or an axis stands for.
using NumberOf = std::function<double(const std::string& name)>;

/// One comparison of a limit: `smaller` must be at most `larger`.
struct MeasuredLimit {
  std::string text;  // in canonical spelling, as it was written
  std::shared_ptr<const Syntax> smaller, larger;

  /// By what factor the smaller side is too large: above 1 if the limit is exceeded. Infinite if
  /// the larger side is not above 0. MiB and GiB are known; `number_of` is asked for other names.
  double excess(const NumberOf& number_of) const;
  /// The quantities that the limit names, in the order of `quantities`.
  std::vector<std::string> named(std::span<const std::string_view> quantities) const;
};

/// Reads the comparisons of a limit. Throws InputError for a text that is no limit.
std::vector<MeasuredLimit> parse_limit(std::string_view text, const Origin& origin);

/// As parse_limit(), and throws InputError also for a name that is neither one of `quantities` nor
/// an integer axis, and for a comparison that names no quantity and so measures nothing.
std::vector<MeasuredLimit> parse_limit(std::string_view text, const Origin& origin,
                                       std::span<const std::string_view> quantities,
                                       const AxisTable& axes);

}  // namespace graphproof::matrix

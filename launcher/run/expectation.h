// How long cases took in earlier runs, so that the longest start first and the price of a run is
// known before it starts.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "reports/record/job/plan.h"

namespace graphproof::launcher {

// More runs add little, and reading them is time before the first rank starts.
inline constexpr int kExpectationRuns = 5;
inline constexpr std::int64_t kExpectationBytes = 8 << 20;

/// Case id -> median seconds of its passing attempts on `device`, from the newest journals below
/// `runs`, kExpectationRuns and kExpectationBytes of them at most. A journal that can't be read is
/// left out.
std::map<std::string, double> earlier_seconds(const std::filesystem::path& runs,
                                              std::string_view device);

/// Sets the expected seconds of the lines whose case ran before.
void expect(std::vector<record::PlanLine>& plan, const std::map<std::string, double>& seconds);

}  // namespace graphproof::launcher

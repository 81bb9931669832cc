#include "launcher/batch/batches.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>

#include "matrix/plan/plan_line.h"

namespace graphproof::launcher {

double CaseGroup::expected_seconds() const {
  double seconds = kStart_seconds;
  for (const Attempt& attempt : attempts) seconds += attempt.line.expected_seconds;
  return seconds;
}

namespace {

/// Splits the group into parts of nearly equal length, in order.
void split(const CaseGroup& group, int slot_count, std::vector<CaseGroup>& parts) {
  const double seconds = group.expected_seconds() - kStart_seconds;
  const int side_by_side = std::max(1, slot_count / group.ranks());
  const auto worth = static_cast<std::size_t>(
      std::min<double>(side_by_side, std::ceil(seconds / kWorthSplitting_seconds)));
  const std::size_t count = group.attempts.size();
  const std::size_t needed = (count + kCasesPerBatch - 1) / kCasesPerBatch;
  const std::size_t part_count = std::clamp<std::size_t>(std::max(worth, needed), 1, count);
  for (std::size_t part = 0; part < part_count; ++part) {
    const auto begin =
        group.attempts.begin() + static_cast<std::ptrdiff_t>(part * count / part_count);
    const auto end =
        group.attempts.begin() + static_cast<std::ptrdiff_t>((part + 1) * count / part_count);
    parts.push_back({{begin, end}});
  }
}

}  // namespace

std::vector<CaseGroup> group_cases(const std::vector<Attempt>& attempts, std::string_view device,
                                   int slot_count) {
  std::vector<CaseGroup> groups;
  std::map<std::string, std::size_t> group_of;
  for (const Attempt& attempt : attempts) {
    const std::string key = matrix::batch_key(attempt.line, device);
    const auto [found, added] = group_of.emplace(key, groups.size());
    if (added) groups.emplace_back();
    groups[found->second].attempts.push_back(attempt);
  }
  std::vector<CaseGroup> parts;
  for (const CaseGroup& group : groups) split(group, slot_count, parts);
  return parts;
}

}  // namespace graphproof::launcher

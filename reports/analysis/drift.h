// How much the numbers of a case differ between two runs. The baseline arm eager_a is compared:
// both runs start it from the same weights and samples, and a case that passed has the same bytes
// in its graph arms.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "reports/outcome/run_result.h"

namespace graphproof::reports {

/// From the same bytes to another result.
/// - bitwise: the digests of losses, gradients and parameters are equal in every step on every
/// rank.
/// - ulp: some digest differs, and the losses and gradient norms differ by kDriftUlps at most.
/// - tolerance: the losses differ by no more than the case's own bound for another order of
///   roundings (evidence line `reference`, or `distances` in a case that states a tolerance).
/// - beyond: by more than that, or by more than kDriftUlps where the case has no such bound.
enum class DriftClass { bitwise, ulp, tolerance, beyond };
std::string_view name(DriftClass drift);

/// Units in the last place of fp32. A sum in another order moves a loss by one or two, and the
/// steps of an arm are few.
inline constexpr int kDriftUlps = 4;

struct Drift {
  DriftClass drift_class = DriftClass::bitwise;
  std::string what;  // the largest difference, and where; empty for bitwise
};

/// Compares the evidence of two attempts at one case. Absent if one of them has no complete arm
/// eager_a, or another number of ranks.
std::optional<Drift> drift(const std::filesystem::path& left, const std::filesystem::path& right);

/// By case id, for each case that is acceptable in both runs and left evidence in both. The folders
/// are those of the runs. Uses a thread for each core.
std::map<std::string, Drift> drifts(const RunResult& left, const std::filesystem::path& left_folder,
                                    const RunResult& right,
                                    const std::filesystem::path& right_folder);

}  // namespace graphproof::reports

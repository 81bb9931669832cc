// The first divergent tensor of a case that failed, as the ranks of a run of its own left it
// (suites/arms/divergence.h): in the attempt's folder, beside its evidence and no part of it.
// Nothing here changes a verdict.
#pragma once

#include <filesystem>
#include <string>

namespace graphproof::reports {

/// Where its evidence lies.
std::filesystem::path divergence_folder(const std::filesystem::path& attempt_folder);

/// "rank 1, step 3, microbatch 1, layer 0, attn, forward, aten::mul, element 17: eager 0.125, graph
/// 0.25 (...)": of the rank that is first in the order of the step, and rather of one that made the
/// tensor than of one that received it. Where no rank names one, why. Empty where nobody looked for
/// it.
std::string divergence_text(const std::filesystem::path& attempt_folder, int ranks);

}  // namespace graphproof::reports

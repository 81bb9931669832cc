// The first divergent tensor of a case that failed. The case is run once more for it
// (suites/arms/divergence.h), and that run leaves its evidence in a folder of the attempt. Nothing
// here changes a verdict.
#pragma once

#include <filesystem>
#include <string>

namespace graphproof::reports {

/// The folder of that evidence.
std::filesystem::path divergence_folder(const std::filesystem::path& attempt_folder);

/// Such as "rank 1, step 3, microbatch 1, layer 0, attn, forward, aten::mul, element 17: eager
/// 0.125, graph 0.25 (...)". Ranks that computed the tensor come before ranks that received it, and
/// among these the one that diverged first in the order of the step. If no rank names a tensor, the
/// text says why. Empty if the search was not run.
std::string divergence_text(const std::filesystem::path& attempt_folder, int ranks);

}  // namespace graphproof::reports

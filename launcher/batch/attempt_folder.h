// Where the attempts at a case lie in a run folder: cases/ID/attempt-N, relative to it.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace graphproof::launcher {

/// The folder of an attempt, relative to the run folder.
std::filesystem::path attempt_folder(const std::string& case_id, int attempt);

/// The numbers of a case's attempts that have a folder, ascending.
std::vector<int> attempt_numbers(const std::filesystem::path& run_folder,
                                 const std::string& case_id);

/// Whether the ranks of the attempt in `folder` began the case. The launcher makes the folder;
/// ranks open their evidence in it when they begin.
bool was_begun(const std::filesystem::path& folder);

/// The numbers N > 0 of the entries of `folder` that are named PREFIX followed by N, ascending.
std::vector<int> numbers_in(const std::filesystem::path& folder, std::string_view prefix);

}  // namespace graphproof::launcher

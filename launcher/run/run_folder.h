// Where runs lie and how they are named: runs/RUN_ID in the current folder, with the link
// runs/latest, or a folder that the user chose. Errors are matrix::InputError, because the user who
// typed the name can mend it.
#pragma once

#include <cstdint>
#include <ctime>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace graphproof::launcher {

/// UTC YYYYMMDD-HHMMSS-xxxx. `salt` distinguishes runs that start in the same second.
std::string make_run_id(std::time_t now, std::uint64_t salt);
/// "2026-11-21T10:15:00Z".
std::string utc_text(std::time_t now);

/// Makes the folder of a new run, mode 0700, and points runs/latest to it. `run_dir` is the folder
/// itself and must be absent or empty; it is then also linked as runs/RUN_ID, so that the run is
/// found by its id.
std::filesystem::path create_run_folder(const std::filesystem::path& runs,
                                        const std::optional<std::string>& run_dir,
                                        const std::string& run_id);

/// Finds a run of cases as users write it: a path, an id under `runs`, or `latest`, which is the
/// latest that has cases.
std::filesystem::path find_run(const std::filesystem::path& runs, const std::string& text);

/// The ids under `runs`, newest first.
std::vector<std::string> run_ids(const std::filesystem::path& runs);

/// "RUN/CASE" split at the last slash; no RUN means `latest`.
struct CaseReference {
  std::optional<std::string> run;
  std::string case_text;
};
CaseReference split_reference(const std::string& text);

}  // namespace graphproof::launcher

// A watched run from its folder to its reports: run.folder gets watched.json, probe/, nccl/, and,
// after the judge, checks.json, report.md and page.html.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "launcher/watch/watch_environment.h"
#include "reports/print/watched_report.h"

namespace graphproof::launcher {

/// What the user asked for.
struct WatchRequest {
  std::vector<std::string> command;  ///< may be empty for prepare_watch() alone
  std::filesystem::path runs;        ///< the folder that holds runs
  std::optional<std::string> run_dir;
  std::string profile = "quick";
  bool cupti = true;
  std::optional<double> graph_share;             ///< the smallest share that is asked for, 0 to 1
  std::optional<std::filesystem::path> against;  ///< the folder of an earlier watched run
  std::vector<std::string> without_cuda;         ///< programs that start nothing that uses CUDA
  std::filesystem::path programs;                ///< the folder of the probe and the judge
  bool output_to_error = false;  ///< the command's standard output goes to standard error
};

/// A watched run whose folder exists.
struct PreparedWatch {
  std::filesystem::path folder;
  record::WatchedRun run;
  Environment variables;  ///< that processes need to be watched
  bool output_to_error = false;
};

/// The probe, in the same folder as this program. Throws matrix::InputError when it is missing.
std::filesystem::path probe_library(const std::filesystem::path& folder);

/// Throws matrix::InputError where the command cannot be one: it does not exist, is a folder or is
/// not executable. Makes nothing.
void check_command(const std::vector<std::string>& command, const Environment& environment);

/// Makes the folder of the run and writes watched.json with the ending `running`. A command that is
/// started by root may become another user, so then every user may write into the folders of the
/// probes. Throws matrix::InputError and record::WriteError.
PreparedWatch prepare_watch(const WatchRequest& request);

using Notice = std::function<void(const std::string&)>;

/// Runs the command, lets the judge judge it, and writes the reports. REQUIRES: `run` of `watch`
/// has a command.
reports::WatchedReport watch(PreparedWatch watch, const std::filesystem::path& judge_program,
                             std::int64_t hang_after_ms, const Notice& notice);

/// Judges the run in `folder` again, or for the first time where its command was started by hand,
/// and writes the reports. A run whose launcher was killed counts as interrupted. Throws
/// matrix::InputError while another launcher runs it.
reports::WatchedReport finish_watch(const std::filesystem::path& folder,
                                    const std::filesystem::path& judge_program,
                                    const Notice& notice);

/// What the folder of a watched run says now; starts nothing and writes nothing. `checks` is absent
/// while the judge has not judged it.
reports::WatchedReport read_watched(const std::filesystem::path& folder);

/// Finds a watched run as users write it: a path, an id under `runs`, or `latest`. Throws
/// matrix::InputError.
std::filesystem::path find_watched_run(const std::filesystem::path& runs, const std::string& text);

/// The watched run that `text` names: a path, an id under `runs`, or `latest` where the latest run
/// of any kind is a watched one. Nothing if it names none.
std::optional<std::filesystem::path> named_watched_run(const std::filesystem::path& runs,
                                                       const std::string& text);

/// The ids of the watched runs under `runs`, newest first.
std::vector<std::string> watched_run_ids(const std::filesystem::path& runs);

}  // namespace graphproof::launcher

// The function that gives a watched run its one verdict, from what the launcher saw of the command
// and what the judge found in its processes. It is pure: no clock, no files.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reports/record/run/record.h"
#include "reports/record/verdict/exit_code.h"
#include "reports/record/watched/watched_checks.h"
#include "reports/record/watched/watched_run.h"

namespace graphproof::reports {

/// The verdict of a watched run. A run without a graph, or in which no check could be made, is
/// `unexercised` and never `pass`.
enum class WatchedVerdict {
  pass,
  fail,            ///< a check failed
  hang,            ///< the command stopped making progress and was ended
  command_failed,  ///< the command failed, and no check says why
  interrupted,     ///< the user ended the run before the command ended, and no check failed
  not_started,     ///< the command could not be started
  unexercised,     ///< nothing was there to judge
  not_judged,      ///< the judge itself failed
};
std::string_view name(WatchedVerdict verdict);
/// The exit code of the verb, which is not that of the command.
record::ExitCode exit_code(WatchedVerdict verdict);

/// The verdict with its reasons.
struct WatchedOutcome {
  WatchedVerdict verdict = WatchedVerdict::not_judged;
  std::string reason;                    ///< one sentence
  std::vector<record::Failing> failing;  ///< the failing checks
  record::CheckCounts counts;
  /// Which part of the job left no evidence, if one is known; nothing passes then.
  std::optional<record::Message> gap;
};

/// `checks`: absent if the judge left none. `processes`: how many wrote evidence.
WatchedOutcome watched_outcome(const record::WatchedRun& run,
                               const std::optional<record::WatchedChecks>& checks, int processes);

/// "signal 11 (Segmentation fault)"
std::string signal_text(std::int64_t signal);
/// "node1.4711 was ended by signal 11 (Segmentation fault)"
std::string signalled_text(const record::SignalledProcess& process);

/// "exit code 3", "signal 11 (Segmentation fault)", "it was interrupted", ...: how the command
/// ended.
std::string ending_text(const record::WatchedRun& run);

}  // namespace graphproof::reports

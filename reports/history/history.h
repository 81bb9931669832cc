// The history of runs: what every case ended with in every run that was added, on which stack, and
// which failures were accepted. It is one file of SQLite in WAL mode: several processes may read
// while one writes, and writers wait for each other. WAL needs a local file system.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "reports/analysis/cross_run.h"
#include "reports/history/sqlite.h"
#include "reports/outcome/run_result.h"

namespace graphproof::reports {

/// How long a writer waits for another one. Adding a run takes a fraction of a second.
inline constexpr int kPatience_ms = 10'000;

/// The name of the history of the runs in one folder.
inline constexpr const char* kHistoryFile = "history.db";

/// How many earlier runs the reports of a run look at. A page shows each of them for each case.
inline constexpr int kEarlierRuns = 20;

/// One run in the history.
struct HistoryRun {
  std::string run_id, started, profile, device, fingerprint;
  int cases = 0, failed = 0, not_shown = 0;
  double case_seconds = 0;  // sum over the cases
  /// Geometric mean of the step times with graphs, against the run before with the same profile and
  /// device, over the cases that passed in both; absent without such cases.
  std::optional<double> step_ratio;
  int step_pairs = 0;
};

/// An accepted failure. As a known issue of a matrix file, it excuses a verdict until a day.
struct AcceptedFailure {
  std::string case_id, name, verdict, reason, owner;
  std::string until, accepted;  // YYYY-MM-DD; `until` is the last day
  std::string run_id;           // where the failure was seen
};

/// See above. Each function is one transaction. Throws matrix::InputError.
class History {
 public:
  /// Opens the history, and brings an older one to this version if it may be written. A file that
  /// is no history, a newer one, or a damaged one is refused and stays as it is.
  History(const std::filesystem::path& file, Database::Mode mode, int patience_ms = kPatience_ms);

  /// Adds a run; a run that is there already is replaced by what is known now. Returns false then.
  bool add(const RunResult& run);

  /// The runs by time of start, the latest `limit` of them, the latest last.
  std::vector<HistoryRun> runs(int limit);
  /// `text`: the id of a case, the beginning of one, or a name.
  CaseHistory show(const std::string& text);
  /// Over the latest `limit` runs; the most uncertain first.
  std::vector<FlakyCase> flaky(int limit);

  /// What the latest kEarlierRuns runs that began before `run`, on the same kind of device, say
  /// about its cases. `run` may be in the history or not.
  CrossRunFacts before(const RunResult& run);

  void accept(const AcceptedFailure& failure);
  std::vector<AcceptedFailure> accepted();

 private:
  std::int64_t case_number(const std::string& case_id, const std::string& name);

  Database database_;
};

/// What a run says about accepted failures, case by case.
struct BaselineDifference {
  enum class State { fresh, changed, expired, accepted, healed };
  State state;
  std::string case_id, name, verdict;
  std::optional<AcceptedFailure> accepted;
};
std::string_view name(BaselineDifference::State state);
/// What it means, in half a sentence.
std::string_view meaning(BaselineDifference::State state);

/// The cases of `run` that fail or were accepted, those that must be acted on first. `today`:
/// YYYY-MM-DD.
std::vector<BaselineDifference> baseline_difference(const RunResult& run,
                                                    const std::vector<AcceptedFailure>& accepted,
                                                    const std::string& today);
/// 1 if a case fails and is not excused; then the exit code of what the run did not show.
record::ExitCode exit_code(const RunResult& run,
                           const std::vector<BaselineDifference>& differences);

}  // namespace graphproof::reports

// Keeps what a run finds: every record in the journal, junit.xml for programs that read it
// meanwhile, and the figures of the live block.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "launcher/run/run.h"
#include "reports/print/junit.h"
#include "reports/print/terminal.h"
#include "reports/record/job/plan.h"
#include "reports/record/run/journal.h"
#include "reports/record/run/record.h"

namespace graphproof::launcher {

/// The records of one launcher. For one thread.
class Recorder {
 public:
  /// Opens the journal and writes junit.xml. `earlier`: the records of an earlier launcher of this
  /// run, oldest first. `setup` must outlive it. Throws record::WriteError.
  Recorder(const RunSetup& setup, const std::vector<record::Record>& earlier);

  /// Counts the earlier records. Their verdicts stand, except those of the cases in `open`, which
  /// run or are judged again.
  void begin(const std::set<std::string>& open);

  /// Adds a record to the journal. `verdict_stands`: it is the case's last one. Throws
  /// record::WriteError.
  void keep(const record::Record& record, bool verdict_stands);

  const record::PlanLine& line(const std::string& case_id) const { return *lines_.at(case_id); }
  /// Whether every other case of the plan has its final record.
  bool is_last(const std::string& case_id) const;
  /// Planned, done and failed cases, and the expected seconds; the rest is left to the caller.
  reports::Progress progress() const;

 private:
  void finish(const record::Record& record);
  void write_junit();

  const RunSetup& setup_;
  reports::Junit junit_;
  record::JournalWriter journal_;
  std::map<std::string, const record::PlanLine*> lines_;  // by case
  std::map<std::string, record::Record> earlier_;         // by case: the last one
  std::set<std::string> done_;                            // cases whose verdict stands
  int skipped_ = 0, failed_ = 0;
  double expected_done_seconds_ = 0, expected_left_seconds_ = 0;
  std::int64_t next_junit_ms_ = 0;
};

}  // namespace graphproof::launcher

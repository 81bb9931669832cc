// junit.xml. It is first written before any case runs, with every case as an error "did not
// finish", so that a run which dies leaves a correct file. Verdicts replace these errors as they
// arrive.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "reports/record/job/plan.h"
#include "reports/record/run/record.h"

namespace graphproof::reports {

/// The document in memory: the plan, and the records so far.
class Junit {
 public:
  /// `run_name` names the run in repro commands (RunResult::run_name).
  Junit(std::string profile, std::string run_name, std::vector<record::PlanLine> plan);

  /// Sets the result of the record's case. An acceptable verdict is a passed test case; skipped.*,
  /// and unexercised with exit code 0, are skipped; infra.* and not_run are errors; all others are
  /// failures.
  void add(const record::Record& record);

  /// The whole document. Control characters that XML cannot hold appear as \xNN.
  std::string text() const;
  /// Writes the document atomically (record::write_atomically).
  void write(const std::filesystem::path& file) const;

 private:
  std::string profile_, run_name_;
  std::vector<record::PlanLine> plan_;
  std::map<std::string, record::Record> records_;
};

}  // namespace graphproof::reports

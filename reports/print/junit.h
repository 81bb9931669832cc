// junit.xml. Written before the first case runs with every case as an error "did not finish", so
// that a run that dies leaves a file that says so; verdicts replace those lines as they arrive.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "reports/record/job/plan.h"
#include "reports/record/run/record.h"

namespace graphproof::reports {

class Junit {
 public:
  /// `run_name` is what repro commands name: RunResult::run_name.
  Junit(std::string profile, std::string run_name, std::vector<record::PlanLine> plan);

  /// Replaces what is said of the record's case. Acceptable verdicts are passed test cases;
  /// skipped.* and an unexercised that costs nothing are skipped; infra and not_run are errors; the
  /// rest failures.
  void add(const record::Record& record);

  /// The whole document. Control characters that XML cannot hold appear as \xNN.
  std::string text() const;
  /// Atomically; see record::write_atomically.
  void write(const std::filesystem::path& file) const;

 private:
  std::string profile_, run_name_;
  std::vector<record::PlanLine> plan_;
  std::map<std::string, record::Record> records_;
};

}  // namespace graphproof::reports

// junit.xml. It is first written before any case runs, with every case as an error "did not
// finish", so that a run which dies leaves a correct file. Verdicts replace these errors as they
// arrive.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "reports/outcome/run_result.h"
#include "reports/record/job/plan.h"
#include "reports/record/run/record.h"

namespace graphproof::reports {

/// The document in memory: the cases of the plan, and what became of them so far. It keeps only
/// what it writes, because a plan of ten thousand cases is large.
class Junit {
 public:
  /// `run_name` names the run in repro commands (RunResult::run_name).
  Junit(std::string profile, std::string run_name, const std::vector<record::PlanLine>& plan);
  /// Of a run with all its records.
  explicit Junit(const RunResult& run);

  /// Sets the result of the record's case. An acceptable verdict is a passed test case; skipped.*,
  /// and unexercised with exit code 0, are skipped; infra.* and not_run are errors; all others are
  /// failures.
  void add(const record::Record& record);

  /// The whole document. Control characters that XML cannot hold appear as \xNN.
  std::string text() const;
  /// Writes the document atomically (record::write_atomically).
  void write(const std::filesystem::path& file) const;

 private:
  enum class Element { none, skipped, failure, error };
  struct Case {
    std::string id, name;
    Element element = Element::error;
    std::string type = "not_run", message = "did not finish", body = {};
    double seconds = 0;
  };
  static Element element_of(const record::Record& record);
  void add_case(const record::PlanLine& line);
  std::string repro(const std::string& case_id) const;

  std::string profile_, run_name_;
  std::vector<Case> cases_;                      // in plan order
  std::map<std::string, std::size_t> index_of_;  // by case id
};

}  // namespace graphproof::reports

// What is left to do of a run: decided from its plan, its journal and the attempts that lie in its
// folder. Of a new run that is everything; of one whose launcher was killed, what has no record
// yet.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "launcher/batch/batches.h"
#include "reports/record/job/context.h"
#include "reports/record/job/plan.h"
#include "reports/record/run/record.h"

namespace graphproof::launcher {

/// A case that failed in a batch waits for its attempt alone: `first` is its record, `attempt` what
/// is to be done.
struct Diagnosis {
  record::Record first;
  Attempt attempt;
};

/// An attempt that ended, and that nobody has judged yet.
struct Unjudged {
  record::Context context;
  record::PlanLine line;
};

struct PendingWork {
  std::vector<Attempt> attempts;       // to be run, in plan order
  std::vector<Diagnosis> diagnoses;    // to be run alone
  std::vector<Unjudged> unjudged;      // to be judged
  std::vector<record::Record> firsts;  // of those in `unjudged` that are the attempt alone
  int cut_off = 0;  // of `attempts` and `diagnoses`: the attempt before was begun, and did not end
  int kept = 0;     // cases whose record stands
  int batch_count = 0;  // batches so far: the next one is named after them

  bool empty() const { return attempts.empty() && diagnoses.empty() && unjudged.empty(); }
};

// A case that ended infra.* says nothing about the product, and may be tried once more when a run
// is resumed.
inline constexpr int kInfraAttempts = 2;

/// True for a failure of a batch case that is to be run once more alone before it counts.
bool wants_diagnosis(const record::Record& record, const record::PlanLine& line);
/// True for a final record whose graph arm gave other numbers than eager, and nobody planted that
/// on purpose: it is then looked for the first tensor that differs. `planted_too`: also where
/// somebody did.
bool wants_divergence(const record::Record& record, const record::PlanLine& line, bool planted_too);
/// "failed in batch b003 (fail.numerics)".
std::string why_alone(const record::Record& first);
/// "attempt 1 ended infra.node".
std::string why_retry(const record::Record& last);

/// The verdict of every record stands, but for those that want a diagnosis or were infra.* fewer
/// than kInfraAttempts times. An attempt that began and did not end keeps its folder, and the case
/// gets the next number. Throws record::ReadError.
PendingWork pending_work(const std::filesystem::path& folder,
                         const std::vector<record::PlanLine>& plan,
                         const std::vector<record::Record>& journal);

/// The folder of an attempt, relative to the run folder.
std::filesystem::path attempt_folder(const std::string& case_id, int attempt);
/// Whether its ranks began: they open their evidence when they begin a case; the folder is there
/// earlier.
bool was_begun(const std::filesystem::path& attempt);
/// The numbers of a case's attempts that have a folder, ascending.
std::vector<int> attempt_numbers(const std::filesystem::path& run_folder,
                                 const std::string& case_id);

}  // namespace graphproof::launcher

// What is left to do of a run, decided from its plan, its journal and the attempt folders. Of a new
// run that is everything; of a run whose launcher was killed, what has no record yet.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "launcher/batch/batches.h"
#include "reports/record/job/context.h"
#include "reports/record/job/plan.h"
#include "reports/record/run/record.h"

namespace graphproof::launcher {

/// A case that failed in a batch and waits for its attempt alone: `first` is the record of the
/// failure, `attempt` the attempt to make.
struct Diagnosis {
  record::Record first;
  Attempt attempt;
};

/// An attempt that ended and was not judged.
struct Unjudged {
  record::Context context;
  record::PlanLine line;
};

/// The cases with work left. A case is in one of the first three lists at most.
struct PendingWork {
  std::vector<Attempt> attempts;     // to be run, in plan order
  std::vector<Diagnosis> diagnoses;  // to be run alone
  std::vector<Unjudged> unjudged;    // to be judged
  std::vector<record::Record>
      firsts;       // the failures in a batch to which attempts in `unjudged` belong
  int cut_off = 0;  // of `attempts` and `diagnoses`: those whose last attempt began and did not end
  int kept = 0;     // cases whose verdict stands
  int batch_count = 0;  // batches so far; the next one gets the next number

  bool empty() const { return attempts.empty() && diagnoses.empty() && unjudged.empty(); }
};

/// Sorts the cases of `plan`. The verdict of every record stands, except those that want a
/// diagnosis or ended infra.* fewer than kInfraAttempts times. An attempt that began and did not
/// end keeps its folder, and the case gets the next number. Throws record::ReadError.
PendingWork pending_work(const std::filesystem::path& folder,
                         const std::vector<record::PlanLine>& plan,
                         const std::vector<record::Record>& journal);

}  // namespace graphproof::launcher

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

/// The verdict of every record stands, but for those that want a diagnosis or were infra.* fewer
/// than kInfraAttempts times. An attempt that began and did not end keeps its folder, and the case
/// gets the next number. Throws record::ReadError.
PendingWork pending_work(const std::filesystem::path& folder,
                         const std::vector<record::PlanLine>& plan,
                         const std::vector<record::Record>& journal);

}  // namespace graphproof::launcher

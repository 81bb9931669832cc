// What becomes of a case when one of its attempts has been judged: its verdict stands, or the case
// runs again, alone, in another place, or to measure the rate of its failure. The same decision
// says whether the attempt's batch ends, whether the first divergent tensor is searched, and
// whether the run ends early. Pure: no clock, no file, no process. The runner carries it out, and
// pending_work.h applies the same rules to a run that is resumed.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "launcher/policy/run_end.h"
#include "reports/outcome/outcome.h"
#include "reports/record/job/context.h"
#include "reports/record/job/plan.h"
#include "reports/record/run/record.h"
#include "reports/record/run/run.h"

namespace graphproof::launcher {

// An attempt that ends infra.* says nothing about the product. The case may be tried once more.
inline constexpr int kInfraAttempts = 2;
// When the first cases of a run all end in the same failure, the machine or the build is broken and
// not a combination of axes. Hangs count for more, because each of them costs minutes.
inline constexpr int kCircuitBreaker = 12, kCircuitBreakerHangs = 4;
// Mismatches after these few most likely have the same cause, and each search costs a start of the
// ranks.
inline constexpr int kDivergenceSearches = 8;

/// A failure that is run again to measure its rate, and the outcomes of these runs so far.
struct Confirmation {
  reports::Outcome failure;
  std::vector<reports::Outcome> seen;
};

/// What is known of a case from its attempts so far in this run.
struct CaseHistory {
  /// The case failed in a batch; its next attempt runs alone, to tell whether the batch caused it.
  std::optional<reports::Outcome> failed_in_batch;
  std::optional<Confirmation> confirmation;
  int infra_attempts = 0;
};

/// What the user asked for.
struct PolicyOptions {
  int confirmations = 0;  // runs of each failure after its first; 0: its rate is not measured
  int max_fail = 0;       // final failures of the product that end the run; 0: any number may fail
  bool search_divergence = true;
  bool search_planted_divergence = false;  // also where a fault was planted on purpose
};
PolicyOptions policy_options(const record::Run& run);

/// How the run stands when a case has been judged. Counts are of this launcher: records of an
/// earlier launcher of the run do not count.
struct RunStanding {
  bool ending = false;          // no case is started any more
  bool fits_elsewhere = false;  // other GPUs or nodes than those of the attempt could run the case
  bool last_case = false;       // every other planned case has its final record
  int divergence_searches = 0;
  int product_failures = 0;                   // final records with a failure of the product
  std::map<std::string, int> final_verdicts;  // verdict -> final records

  /// Counts a final record.
  void count(const reports::Outcome& outcome);
};

/// An attempt that has ended and been judged.
struct JudgedAttempt {
  record::PlanLine line;
  record::Context context;
  reports::Outcome outcome;
};

/// The attempt that follows: none, the case alone in its processes after a failure in a batch, one
/// in another place after trouble of the infrastructure, or one more run of a failure, alone.
enum class NextAttempt { none, alone, elsewhere, confirmation };

/// What the runner has to do.
struct CaseDecision {
  reports::Outcome outcome;  // of this attempt's record, with what earlier attempts showed
  CaseHistory history;       // with which the next attempt is decided
  NextAttempt next = NextAttempt::none;
  std::string again;       // why the next attempt is made; "" if there is none
  bool end_batch = false;  // no further case runs in the attempt's processes
  bool search_divergence = false;
  std::optional<RunEnd> run_end;

  /// The record of this attempt is the case's final one.
  bool verdict_stands() const { return next == NextAttempt::none; }
};

CaseDecision decide(const JudgedAttempt& attempt, CaseHistory history, const PolicyOptions& options,
                    const RunStanding& standing);

/// True for the record of a failure in a batch that is run once more alone before it counts.
bool wants_diagnosis(const record::Record& record, const record::PlanLine& line);
/// Why the next attempt is made: "failed in batch b003 (fail.numerics)".
std::string why_alone(const record::Record& first);
/// Why the next attempt is made: "attempt 1 ended infra.node".
std::string why_retry(const record::Record& last);
/// The outcome of which a record was made.
reports::Outcome outcome_of(const record::Record& record);

}  // namespace graphproof::launcher

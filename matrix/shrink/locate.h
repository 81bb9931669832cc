// Finds out which of a failing row's values make it fail, by Bayesian adaptive group testing on the
// valid rows of a model. It starts from the outcomes of other rows, asks for jobs whose outcomes
// give the most information, and ends with a combination that it has confirmed. It runs nothing
// itself: the caller runs the jobs. The same question, seed and outcomes give the same jobs.
//
//   Locator locator(question);
//   while (auto jobs = locator.next_jobs(1); !jobs.empty())
//     for (const Job& job : jobs) locator.record(job.id, run(job.row));
//   locator.answer();
//
// A fault is taken to be a conjunction: rows that have all of its values fail, except for noise.
#pragma once

#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "matrix/cover/model/model.h"
#include "matrix/cover/model/random.h"
#include "matrix/shrink/candidates.h"
#include "matrix/shrink/neighbourhood.h"

namespace graphproof::shrink {

/// How a job ended. `fail` is the failure in question. `invalid` is a job that was lost, or that
/// failed in another way, which hides whether this failure would have happened.
enum class Outcome { pass, fail, invalid };

/// The outcome of a row that ran before.
struct Seen {
  cover::Row row;  // kAny for a value that the model does not have
  Outcome outcome = Outcome::invalid;
};

/// What to locate, and how many jobs it may take.
struct Question {
  const cover::Model* model = nullptr;  // outlives the locator
  cover::Row failing;                   // a valid row that failed
  std::vector<Seen> seen;               // other rows that ran before
  std::optional<Noise> noise = {};      // instead of beliefs() below
  std::uint64_t seed = 1;
  int most_jobs = 100;  // 0: answer from `seen` alone
  int repeats = 3;      // of the failing row, first of all; 0: it is known to fail again
};

/// The beliefs about the noise of a question that has none of its own; evidence decides between
/// them. There is no noise; three of ten triggering jobs pass (repeats say little against that: one
/// failing row in four fails four times in a row even so); more of them pass; or a second fault
/// with the same signature makes one row in five fail.
const std::vector<Belief>& beliefs();

/// Why a job runs: to see whether the failure repeats, to locate its cause, or to confirm a
/// combination by running it with everything else changed (alone) and without one of its values.
enum class Purpose { repeat, locate, alone, without };
std::string_view name(Purpose purpose);

/// A row to run.
struct Job {
  int id = 0;
  Purpose purpose = Purpose::locate;
  cover::Row row;
};

/// How far the locator is.
enum class State {
  running,
  confirmed,  // the combination failed with everything else changed, and passed without any of its
              // values
  undecided,  // no further job would give information
  wide,       // the failure takes more than kMostValues values
  not_reproduced,  // the failing row did not fail again
  out_of_jobs,     // most_jobs have run
  no_outcomes,     // too many jobs ended without an outcome
};
std::string_view name(State state);

/// A row and its outcome.
struct Evidence {
  cover::Row row;
  Outcome outcome = Outcome::invalid;
  std::optional<Job> job = {};  // nothing for a row of Question::seen
};

/// The most probable cause. Parameters are indices of the model.
struct Answer {
  State state = State::running;
  std::vector<int> combination;  // parameters whose values together fail; empty: every row fails
  /// Other combinations that the rules make the same condition.
  std::vector<std::vector<int>> same;
  double probability = 0;
  /// Parameters that had another value in a row that failed, and are in no likely candidate.
  std::vector<int> irrelevant;
  std::vector<int> implied;   // parameters that the rules fix wherever the combination occurs
  std::vector<int> open;      // parameters that are neither
  std::vector<int> fixed;     // parameters with a single value in all valid rows
  double pass_triggered = 0;  // the estimated share of triggering jobs that pass
  int jobs = 0;
  int repeats = 0, invalid = 0;  // how many of the jobs were repeats, and how many had no outcome
};

// From this probability on, a combination is confirmed instead of being searched for.
constexpr double kSure = 0.97;
// The probability that may remain that a value of the combination is not needed.
constexpr double kUnneeded = 0.01;
// How often the combination has to fail with everything else changed.
constexpr int kAloneFails = 2;

/// Locates one failure.
class Locator {
 public:
  explicit Locator(Question question);

  /// Up to `idle` jobs to run at the same time; none once there is an answer. REQUIRES: all earlier
  /// jobs are recorded.
  std::vector<Job> next_jobs(int idle);
  void record(int job, Outcome outcome);

  State state() const { return state_; }
  Answer answer();
  const std::vector<Evidence>& evidence() const { return evidence_; }
  const Neighbourhood& neighbourhood() const { return *around_; }

 private:
  /// The most probable candidate, together with those that no valid row distinguishes from it.
  struct Leader {
    Mask mask = 0, closure = 0;
    double probability = 0;
    std::vector<Mask> same;
  };

  void start(const std::vector<int>& parameters);
  void believe(std::vector<Belief> beliefs, bool other_failures);
  void learn(const Evidence& evidence);
  Leader leader();

  std::vector<Job> repeat();
  std::vector<Job> confirm(const Leader& leader, int idle);
  std::vector<Job> search(int idle, const Leader& leader);
  bool split(const Leader& leader);
  bool fall_back();
  double pass_triggered() const;
  double second_fault(const Leader& leader) const;
  /// What becomes of the other values of a row.
  using Rest = Neighbourhood::Rest;
  Rest some_rest();
  std::optional<cover::Row> fresh_row(Mask keep, std::optional<int> without, Rest rest,
                                      const std::vector<cover::Row>& taken);
  std::optional<cover::Row> bare_row(const Leader& leader, std::optional<int> without,
                                     const std::vector<cover::Row>& taken);
  std::vector<Job> numbered(Purpose purpose, std::vector<cover::Row> rows);

  Question question_;
  cover::Random random_;
  std::unique_ptr<Neighbourhood> around_;
  std::unique_ptr<Candidates> candidates_;
  std::vector<Evidence> evidence_;  // the rows of Question::seen, then the jobs
  std::vector<Job> pending_;
  State state_ = State::running;
  bool fell_back_ = false;
  double second_fault_ = 0;
  std::optional<Mask> confirming_;           // closure of the leader that is being confirmed
  std::vector<std::pair<int, Mask>> alone_;  // jobs of purpose alone, and the leader's closure
  int next_id_ = 0;
};

}  // namespace graphproof::shrink

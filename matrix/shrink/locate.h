// Which of a failing row's values make it fail: Bayesian adaptive group testing on the valid rows
// of a model. Starts from what other rows did, asks for the rows whose outcomes tell most, ends
// with a combination that it has confirmed. Pure and driven step by step: the same question, seed
// and outcomes give the same jobs.
//
//   Locator locator(question);
//   while (auto jobs = locator.next_jobs(1); !jobs.empty())
//     for (const Job& job : jobs) locator.record(job.id, run(job.row));
//   locator.answer();
//
// A fault is taken to be a conjunction: rows that have all of its values fail, save where the noise
// says otherwise.
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

/// `fail` is the failure that is looked into. Another failure hides whether this one would have
/// come: `invalid`, like a job that the infrastructure lost.
enum class Outcome { pass, fail, invalid };

struct Seen {
  cover::Row row;  // kAny where it has a value that the model does not
  Outcome outcome = Outcome::invalid;
};

struct Question {
  const cover::Model* model = nullptr;  // outlives the locator
  cover::Row failing;                   // a valid row that failed
  std::vector<Seen> seen;               // what other rows did before
  std::optional<Noise> noise = {};      // instead of beliefs() below
  std::uint64_t seed = 1;
  int most_jobs = 100;  // 0 answers from what was seen
  int repeats = 3;      // of the failing row, before anything else; 0: it is known to fail
};

/// What is believed of the noise where the question does not say: that there is none; that three of
/// ten triggering jobs pass (a clean repeat says little against it: one failing row in four repeats
/// cleanly four times even so); that it is worse; and that a second fault with the same signature
/// makes one row in five fail. Evidence decides between them.
const std::vector<Belief>& beliefs();

enum class Purpose { repeat, locate, alone, without };
std::string_view name(Purpose purpose);

struct Job {
  int id = 0;
  Purpose purpose = Purpose::locate;
  cover::Row row;
};

enum class State {
  running,
  confirmed,  // the combination alone failed twice with everything else changed, and without each
              // value it passed
  undecided,  // no further job would tell anything
  wide,       // it takes more than kMostValues values
  not_reproduced,  // the failing row did not fail again
  out_of_jobs,     // most_jobs are spent
  no_outcomes,     // jobs end without an outcome
};
std::string_view name(State state);

/// A row and what came of it.
struct Evidence {
  cover::Row row;
  Outcome outcome = Outcome::invalid;
  std::optional<Job> job = {};  // nothing: it was seen before
};

struct Answer {
  State state = State::running;
  std::vector<int> combination;  // parameters whose values fail together; empty: every row fails
  std::vector<std::vector<int>> same;  // other spellings: the rules make them the same condition
  double probability = 0;
  std::vector<int>
      irrelevant;  // changed in a row that failed all the same, and no part of what is still likely
  std::vector<int> implied;   // the rules give them this value wherever the combination stands
  std::vector<int> open;      // neither
  std::vector<int> fixed;     // have one value in all valid rows
  double pass_triggered = 0;  // how often a triggering job passes all the same, as far as was seen
  int jobs = 0, repeats = 0,
      invalid = 0;  // of all jobs: how many were repeats, how many had no outcome
};

// Probability at which a combination is confirmed rather than looked for.
constexpr double kSure = 0.97;
// What may be left of the chance that a value is not needed after all.
constexpr double kUnneeded = 0.01;
// The combination alone has to fail so often.
constexpr int kAloneFails = 2;

class Locator {
 public:
  explicit Locator(Question question);

  /// Up to `idle` jobs to run at the same time; none once there is an answer. REQUIRES: the earlier
  /// ones are recorded.
  std::vector<Job> next_jobs(int idle);
  void record(int job, Outcome outcome);

  State state() const { return state_; }
  Answer answer();
  const std::vector<Evidence>& evidence() const { return evidence_; }
  const Neighbourhood& neighbourhood() const { return *around_; }

 private:
  /// The candidates that no valid row tells apart from the most probable one.
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
  std::vector<Evidence> evidence_;  // seen before, then jobs
  std::vector<Job> pending_;
  State state_ = State::running;
  bool fell_back_ = false;
  double second_fault_ = 0;
  std::optional<Mask> confirming_;           // closure of the leader that was being confirmed
  std::vector<std::pair<int, Mask>> alone_;  // job that ran a combination alone, closure of it
  int next_id_ = 0;
};

}  // namespace graphproof::shrink

// Where a case stands on this rank, and how that is told: heartbeats to the watcher, phase times to
// the evidence, votes to the peers. Every arm of a case writes through one CaseScope.
//
// Ranks agree first and judge never: a rank that fails between two boundaries votes its code at the
// next one, so that no peer is left waiting in a collective, and only then leaves the case.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "fixtures/process/heartbeat_writer.h"
#include "reports/record/evidence/evidence.h"
#include "reports/record/verdict/phase.h"

namespace graphproof::suites {

using record::Phase;

/// This rank is well, but a peer voted a failure: the case ends here for everybody.
struct PeerFailure : std::runtime_error {
  PeerFailure(Phase boundary, const std::vector<int>& codes);
};

/// This rank failed; the evidence line `error` is written and the peers know.
struct CaseFailure : std::runtime_error {
  using std::runtime_error::runtime_error;
};

class CaseScope {
 public:
  /// Every rank's code at a boundary, by rank; waits for all of them.
  using Vote = std::function<std::vector<int>(Phase boundary, int code)>;

  CaseScope(record::EvidenceWriter& evidence, fixtures::HeartbeatWriter& heartbeat);
  /// Votes need the peers' world, which starts in phase init: until this is called, vote() refuses.
  void votes_through(Vote vote) { vote_ = std::move(vote); }

  /// From here on this rank is in `phase` of `arm` at `step`: a heartbeat, and the time until the
  /// next call counts there.
  void enter(Phase phase, const std::string& arm, std::int64_t step);
  /// enter() of `phase` ends the process at once, as something outside the program would
  /// (suites/rank/early_exit.h).
  void exit_in(std::optional<Phase> phase) { exit_in_ = phase; }
  /// Time that went into `phase` before this scope existed.
  void spent(Phase phase, double ms);
  /// Writes the time spent in each (phase, arm) since the last call, in the order in which they
  /// were first entered.
  void write_phases();

  void write(std::string_view kind, const record::Json& fields) { evidence_.write(kind, fields); }
  record::EvidenceWriter& evidence() { return evidence_; }
  Phase phase() const { return phase_; }
  std::string place() const;  // "phase replay, arm lockstep_graph, step 3"

  /// Where the next vote takes place.
  void boundary(Phase next) { boundary_ = next; }
  /// Votes at the boundary and writes the line. Throws PeerFailure when this rank is well and a
  /// peer is not.
  void vote(int code);
  /// Every rank's `value` at the boundary: a question, not a vote, and no line.
  std::vector<int> ask(int value);
  /// Runs `work` up to `boundary`. An exception of `work` becomes an `error` line, a vote and
  /// CaseFailure.
  void section(Phase boundary, const std::function<void()>& work);
  /// Writes the `error` line for `error` at the present place and returns the code to vote.
  int report(const std::exception& error);

 private:
  using Clock = std::chrono::steady_clock;
  struct Spent {
    Phase phase;
    std::string arm;
    double ms = 0;
  };
  void account();

  record::EvidenceWriter& evidence_;
  fixtures::HeartbeatWriter& heartbeat_;
  Vote vote_;
  Phase phase_ = Phase::validate, boundary_ = Phase::init;
  std::string arm_;
  std::int64_t step_ = 0;
  Clock::time_point since_;
  std::vector<Spent> spent_;
  std::optional<Phase> exit_in_;
  bool told_peers_ = false;  // a failing code of this rank was voted
};

/// Milliseconds of the monotonic clock, as heartbeats count them.
std::int64_t monotonic_ms();

}  // namespace graphproof::suites

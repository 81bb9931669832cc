// The progress of a case on this rank and its reports: heartbeats for the launcher, phase times and
// evidence lines, votes among the ranks. All arms of a case write through one CaseScope.
//
// A rank that fails between two boundaries votes its code at the next one and only then leaves the
// case, so that no peer is left waiting in a collective. Ranks never judge.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
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

/// This rank has no error, but a peer voted a failure, so the case ends on all ranks.
struct PeerFailure : std::runtime_error {
  PeerFailure(Phase boundary, const std::vector<int>& codes);
};

/// This rank failed. The evidence line `error` was written and the failure was voted.
struct CaseFailure : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// One case on this rank. Not thread-safe.
class CaseScope {
 public:
  /// Sends `code` at a boundary and returns the codes of all ranks, by rank. Waits for all of them.
  using Vote = std::function<std::vector<int>(Phase boundary, int code)>;

  /// Tells somebody that this rank enters a phase.
  using Entered = std::function<void(Phase, const std::string& arm, std::int64_t step)>;

  CaseScope(record::EvidenceWriter& evidence, fixtures::HeartbeatWriter& heartbeat);
  /// The scope of a process that has neither file nor heartbeat of its own
  /// (suites/rank/resuming_process.h).
  CaseScope(record::EvidenceLines& evidence, Entered entered);
  /// Sets how to vote. Votes need the world of all ranks, which starts in phase init; before this
  /// call vote() throws std::logic_error.
  void votes_through(Vote vote) { vote_ = std::move(vote); }

  /// This rank enters `phase` of `arm` at `step`: sends a heartbeat and counts the time until the
  /// next call for that phase and arm.
  void enter(Phase phase, const std::string& arm, std::int64_t step);
  /// Makes enter() of `phase` end the process at once, for tests (suites/rank/early_exit.h).
  void exit_in(std::optional<Phase> phase) { exit_in_ = phase; }
  /// Adds time that was spent in `phase` before this object was made.
  void spent(Phase phase, double ms);
  /// Writes the time spent in each phase and arm since the last call, in the order of their first
  /// entry.
  void write_phases();

  template <record::LineKind Line>
  void write(const Line& line) {
    evidence_.write(line);
  }
  /// The file of the evidence; empty if it is not written here.
  const std::filesystem::path& evidence_file() const { return evidence_file_; }
  Phase phase() const { return phase_; }
  const std::string& arm() const { return arm_; }
  /// Notes that something is wrong with the graphs of the case, so that their nodes are worth
  /// keeping. The first reason is kept.
  void doubt(const std::string& reason) {
    if (doubt_.empty()) doubt_ = reason;
  }
  const std::string& doubts() const { return doubt_; }  // the first reason; empty without one
  std::string place() const;  // "phase replay, arm lockstep_graph, step 3"

  /// Sets the boundary of the next vote.
  void boundary(Phase next) { boundary_ = next; }
  /// Votes at the boundary and writes the line `vote`. `code` 0 means no error. Throws PeerFailure
  /// if `code` is 0 and a peer's is not.
  void vote(int code);
  /// Exchanges `value` at the boundary and returns the values of all ranks, by rank. Not a vote:
  /// writes no line and throws no PeerFailure.
  std::vector<int> gather(int value);
  /// Runs `work` and votes at `boundary`. An exception of `work` becomes an `error` line, a vote of
  /// its code and CaseFailure.
  void section(Phase boundary, const std::function<void()>& work);
  /// Writes the `error` line for `error` in the present phase and returns the code to vote.
  int report(const std::exception& error);

 private:
  using Clock = std::chrono::steady_clock;
  struct Spent {
    Phase phase;
    std::string arm;
    double ms = 0;
  };
  void account();

  record::EvidenceLines& evidence_;
  const std::filesystem::path evidence_file_;
  const Entered entered_;
  Vote vote_;
  Phase phase_ = Phase::validate, boundary_ = Phase::init;
  std::string arm_, doubt_;
  std::int64_t step_ = 0;
  Clock::time_point since_;
  std::vector<Spent> spent_;
  std::optional<Phase> exit_in_;
  bool failure_voted_ = false;  // this rank has voted a failure
};

/// Milliseconds of the monotonic clock, which heartbeats use.
std::int64_t monotonic_ms();

}  // namespace graphproof::suites

// Watches the ranks of one batch by their heartbeats and decides who is late. Without IO:
// heartbeats, vanished processes and the time go in; finished cases, a hang or a death come out.
// All times are the launcher's own clock, taken when a line arrived: clocks of ranks need not
// agree.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "reports/record/job/batch.h"
#include "reports/record/job/context.h"
#include "reports/record/job/heartbeat.h"

namespace graphproof::launcher {

/// What one rank has shown of one case.
struct RankProgress {
  bool begun = false, ended = false;
  std::optional<record::Phase> phase;
  std::string arm;
  std::int64_t step = 0;
  std::optional<record::Collective> collective;
  std::int64_t begun_ms = 0, ended_ms = 0;
  std::int64_t heartbeat_ms = 0;  // last sign of life within the case
  std::int64_t progress_ms = 0;   // when phase, arm or step last changed: limits count from here
  std::optional<std::int64_t> log_begin, log_end;
};

/// What one rank's process has shown.
struct RankProcess {
  std::int64_t pid = 0;  // 0: it never said hello
  bool ready = false, bye = false, gone = false;
  std::int64_t heartbeat_ms = 0;  // last sign of life, or the start of the batch
  std::int64_t gone_ms = 0;
};

struct HangDecision {
  std::size_t case_index = 0;  // of the missing rank
  record::Phase phase = record::Phase::init;
  std::int64_t limit_ms = 0;
  int missing_rank = 0;
  std::vector<int> waiting_ranks;
  std::optional<record::Collective> last_collective;
};

class HangDetector {
 public:
  struct Case {
    std::string id;
    int attempt = 1;
    record::Limits limits_ms;  // every phase
  };

  /// REQUIRES: world_size >= 1, at least one case; the ranks run them one at a time in this order,
  /// save that those which they refuse come first: a refusal must come before device work, and only
  /// the ranks know what they refuse.
  HangDetector(int world_size, std::vector<Case> cases, std::int64_t now_ms);

  /// False when the line does not belong to this batch (unknown rank or case, or out of order); it
  /// then counts for nothing, so a rank that sends only such lines is silent.
  bool heartbeat(const record::Heartbeat& line, std::int64_t now_ms);
  /// What happened until now took no time: prestarted ranks may begin.
  void restart(std::int64_t now_ms);
  /// The process of `rank` no longer runs.
  void gone(int rank, std::int64_t now_ms);

  /// Somebody passed the limit of the phase it is in: the rank that is missing and those that wait
  /// for it.
  ///
  /// The missing rank is the least advanced one: that has ended the fewest cases, then by the last
  /// collective, then by step, then the one that is silent for longest. A rank that has only just
  /// been heard is not counted.
  std::optional<HangDecision> overdue(std::int64_t now_ms) const;

  /// The rank whose process ended before it had said goodbye, the first of them.
  std::optional<int> first_dead() const { return first_dead_; }
  /// Every rank has said that it could begin.
  bool all_ready() const;
  bool all_gone() const;
  std::int64_t last_gone_ms() const;

  /// Every rank has ended the case.
  bool ended(std::size_t case_index) const;
  /// Some rank has begun it.
  bool begun(std::size_t case_index) const;
  /// Every rank has ended it, or its communicators: then none measures anything of its GPU any
  /// more.
  bool measured(std::size_t case_index) const;
  /// The first case that not every rank has ended; the number of cases if there is none.
  std::size_t current() const;
  /// The case that `rank` is in or, unless it refuses another, would begin next; the last one once
  /// it has ended all.
  std::size_t case_of(int rank) const;
  /// The cases that are begun, in the order in which a rank began them last.
  const std::vector<std::size_t>& as_begun() const { return as_begun_; }

  int world_size() const { return static_cast<int>(processes_.size()); }
  const std::vector<Case>& cases() const { return cases_; }
  /// The process ids of the ranks that have sent hello and are not gone.
  std::vector<int> living_pids() const;
  const RankProcess& process(int rank) const { return processes_.at(rank); }
  const RankProgress& progress(std::size_t case_index, int rank) const {
    return progress_.at(case_index).at(rank);
  }

 private:
  /// What a rank is doing now, how long it may take and since when it has taken.
  struct Wait {
    record::Phase phase;
    std::int64_t limit_ms;
    std::int64_t since_ms;
  };
  Wait wait_of(int rank) const;
  bool less_advanced(int left, int right) const;
  std::optional<std::size_t> index_of(const std::string& case_id, int attempt) const;

  std::vector<Case> cases_;
  std::vector<RankProcess> processes_;
  std::vector<std::vector<RankProgress>> progress_;  // [case][rank]
  std::vector<std::size_t> as_begun_;
  std::vector<std::optional<std::size_t>>
      inside_;  // [rank]: the case that it has begun and not ended
  std::optional<int> first_dead_;
};

}  // namespace graphproof::launcher

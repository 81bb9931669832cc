// Follows the ranks of one batch by their heartbeats and decides which of them hang. Without IO:
// heartbeats, processes that are gone and the time go in; ended cases, a hang or a death come out.
// All times are those of the launcher's clock when a line arrived, because the clocks of ranks need
// not agree.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "reports/record/job/batch.h"
#include "reports/record/job/context.h"
#include "reports/record/job/heartbeat.h"

namespace graphproof::launcher {

/// What the heartbeats of one rank have shown of one case.
struct RankProgress {
  bool begun = false, ended = false;
  std::optional<record::Phase> phase;
  std::string arm;
  std::int64_t step = 0;
  std::optional<record::Collective> collective;
  std::optional<record::CollectiveProgress> device;  // what its device had counted last
  std::int64_t begun_ms = 0, ended_ms = 0;
  std::int64_t heartbeat_ms = 0;  // when the last heartbeat of the case came
  std::int64_t progress_ms = 0;   // when phase, arm or step last changed: limits count from here
  std::int64_t progress_queued_ms = 0;  // RankProcess::queued_ms then
  std::optional<std::int64_t> log_begin, log_end;
};

/// What is known of the process of one rank.
struct RankProcess {
  std::int64_t pid = 0;  // 0: it never sent hello
  bool ready = false, bye = false, gone = false;
  std::int64_t heartbeat_ms = 0;         // when the last heartbeat came, or the batch started
  std::int64_t heartbeat_queued_ms = 0;  // queued_ms then
  std::int64_t queued_ms = 0;            // that it could run so far and had no processor
  std::int64_t gone_ms = 0;
};

/// A hang: the rank for which the others wait, and where it is.
struct HangDecision {
  std::size_t case_index = 0;  // of the missing rank
  record::Phase phase = record::Phase::init;
  std::int64_t limit_ms = 0;
  std::int64_t silent_ms = 0;
  int missing_rank = 0;
  std::vector<int> waiting_ranks;
  std::optional<record::Collective> last_collective;
};

/// The heartbeats of one batch, from its start on.
class HangDetector {
 public:
  /// A case of the batch, and how long each of its phases may take.
  struct Case {
    std::string id;
    int attempt = 1;
    record::Limits limits_ms;  // of every phase
  };

  /// REQUIRES: world_size >= 1, at least one case. The ranks run the cases one at a time in this
  /// order, but first those that they refuse: a refusal must come before device work, and only the
  /// ranks know what they refuse.
  HangDetector(int world_size, std::vector<Case> cases, std::int64_t now_ms);

  /// Takes one line. False when it does not belong to this batch (unknown rank or case, or out of
  /// order). It then counts for nothing, so a rank that sends only such lines is silent.
  bool heartbeat(const record::Heartbeat& line, std::int64_t now_ms);
  /// The time until now counts for no limit: prestarted ranks begin now.
  void restart(std::int64_t now_ms);
  /// The process of `rank` could run for `queued_ms` so far, since it began, and had no processor.
  void queued(int rank, std::int64_t queued_ms);
  /// The process of `rank` no longer runs.
  void gone(int rank, std::int64_t now_ms);

  /// A hang, if a rank has passed the limit of the phase in which it is: the rank that is missing
  /// and the ranks that wait for it.
  ///
  /// The missing rank is the one for which the others wait by the counts of their devices
  /// (record::stall_of). If those say nothing, it is the least advanced one: the one that has ended
  /// the fewest cases, then by the last collective, then by step, then the one that has been silent
  /// for longest. A rank that has sent a heartbeat only just now is not a candidate. The time in
  /// which the missing rank could run and had no processor counts for no limit, but for nine tenths
  /// of its silence at most, so that every hang is found: threads that wait by asking again and
  /// again queue for processors too.
  std::optional<HangDecision> overdue(std::int64_t now_ms) const;

  /// The first rank whose process ended without a last heartbeat ("bye").
  std::optional<int> first_dead() const { return first_dead_; }
  /// Every rank has reported that it is ready to begin.
  bool all_ready() const;
  bool all_gone() const;
  std::int64_t last_gone_ms() const;

  /// Every rank has ended the case.
  bool ended(std::size_t case_index) const;
  /// Some rank has begun it.
  bool begun(std::size_t case_index) const;
  /// Every rank has ended the case, or at least its communicators. From then on none measures
  /// anything of its GPU.
  bool measured(std::size_t case_index) const;
  /// The first case that not every rank has ended; the number of cases if there is none.
  std::size_t current() const;
  /// The case that `rank` runs or, unless it refuses another, would begin next; the last case once
  /// it has ended all.
  std::size_t case_of(int rank) const;
  /// The cases that have begun, in the order in which a rank began them last.
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
  /// The phase in which a rank is, how long that may take, and since when it is there.
  struct Wait {
    record::Phase phase;
    std::int64_t limit_ms;
    std::int64_t since_ms;
    std::int64_t queued_ms;  // since then
  };
  Wait wait_of(int rank) const;
  bool less_advanced(int left, int right) const;
  /// The rank of `silent` that is stuck by the counts of the devices.
  std::optional<int> stuck(const std::vector<int>& silent) const;
  std::optional<std::size_t> index_of(const std::string& case_id, int attempt) const;

  std::vector<Case> cases_;
  std::vector<RankProcess> processes_;
  std::vector<std::vector<RankProgress>> progress_;  // by case, then by rank
  std::vector<std::size_t> as_begun_;
  std::vector<std::optional<std::size_t>>
      inside_;  // by rank: the case that it has begun and not ended
  std::optional<int> first_dead_;
};

}  // namespace graphproof::launcher

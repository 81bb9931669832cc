#include "launcher/batch/hang_detector.h"

#include <algorithm>
#include <cassert>
#include <tuple>

namespace graphproof::launcher {

using record::Phase;

namespace {

/// The most of a rank's silence that a lack of processors excuses.
constexpr std::int64_t kExcusedTenths = 9;

void note_heartbeat(RankProcess& process, std::int64_t now_ms) {
  process.heartbeat_ms = now_ms;
  process.heartbeat_queued_ms = process.queued_ms;
}

}  // namespace

HangDetector::HangDetector(int world_size, std::vector<Case> cases, std::int64_t now_ms)
    : cases_(std::move(cases)),
      processes_(world_size),
      progress_(cases_.size(), std::vector<RankProgress>(world_size)),
      inside_(world_size) {
  assert(world_size >= 1 && !cases_.empty());
  for (RankProcess& process : processes_) process.heartbeat_ms = now_ms;
}

std::optional<std::size_t> HangDetector::index_of(const std::string& case_id, int attempt) const {
  for (std::size_t i = 0; i < cases_.size(); ++i)
    if (cases_[i].id == case_id && cases_[i].attempt == attempt) return i;
  return std::nullopt;
}

bool HangDetector::heartbeat(const record::Heartbeat& line, std::int64_t now_ms) {
  if (line.rank < 0 || line.rank >= world_size()) return false;
  RankProcess& process = processes_[line.rank];
  if (process.bye) return false;
  if (line.event == "ready") {
    if (process.pid == 0) return false;
    process.ready = true;
    note_heartbeat(process, now_ms);
    return true;
  }
  if (line.event == "hello" || line.event == "bye") {
    // A second hello would come from another process that claims to be this rank.
    if ((process.pid != 0) == (line.event == "hello")) return false;
    if (line.event == "hello") process.pid = line.pid;
    process.bye = line.event == "bye";
    note_heartbeat(process, now_ms);
    return true;
  }
  const auto index = index_of(line.case_id, line.attempt);
  if (!index || process.pid == 0) return false;
  RankProgress& progress = progress_[*index][line.rank];
  std::optional<std::size_t>& inside = inside_[line.rank];
  if (line.event == "case_begin" ? inside || progress.begun : inside != index) return false;
  if (line.event == "case_begin") {
    inside = index;
    std::erase(as_begun_, *index);
    as_begun_.push_back(*index);
    progress.begun = true;
    progress.begun_ms = progress.progress_ms = now_ms;
    progress.progress_queued_ms = process.queued_ms;
    progress.log_begin = line.log_bytes;
  } else if (line.event == "case_end") {
    inside.reset();
    progress.ended = true;
    progress.ended_ms = now_ms;
    progress.log_end = line.log_bytes;
  } else if (line.event == "progress") {
    progress.device = line.progress;
  } else {
    const auto place = std::tie(progress.phase, progress.arm, progress.step);
    if (place != std::tie(line.phase, line.arm, line.step)) {
      progress.progress_ms = now_ms;
      progress.progress_queued_ms = process.queued_ms;
    }
    progress.phase = line.phase;
    progress.arm = line.arm;
    progress.step = line.step;
    if (line.collective) progress.collective = line.collective;
  }
  note_heartbeat(process, now_ms);
  progress.heartbeat_ms = now_ms;
  return true;
}

void HangDetector::restart(std::int64_t now_ms) {
  for (RankProcess& process : processes_) note_heartbeat(process, now_ms);
}

void HangDetector::queued(int rank, std::int64_t queued_ms) {
  processes_.at(rank).queued_ms = queued_ms;
}

void HangDetector::gone(int rank, std::int64_t now_ms) {
  RankProcess& process = processes_.at(rank);
  if (process.gone) return;
  process.gone = true;
  process.gone_ms = now_ms;
  if (!process.bye && !first_dead_) first_dead_ = rank;
}

std::size_t HangDetector::case_of(int rank) const {
  if (inside_[rank]) return *inside_[rank];
  std::size_t index = 0;
  while (index + 1 < cases_.size() && progress_[index][rank].ended) ++index;
  return index;
}

bool HangDetector::ended(std::size_t case_index) const {
  const auto& ranks = progress_.at(case_index);
  return std::all_of(ranks.begin(), ranks.end(),
                     [](const RankProgress& rank) { return rank.ended; });
}

bool HangDetector::begun(std::size_t case_index) const {
  const auto& ranks = progress_.at(case_index);
  return std::any_of(ranks.begin(), ranks.end(),
                     [](const RankProgress& rank) { return rank.begun; });
}

bool HangDetector::measured(std::size_t case_index) const {
  const auto& ranks = progress_.at(case_index);
  return std::all_of(ranks.begin(), ranks.end(), [](const RankProgress& rank) {
    return rank.ended || rank.phase == Phase::teardown_comm ||
           rank.phase == Phase::teardown_process;
  });
}

std::size_t HangDetector::current() const {
  std::size_t index = 0;
  while (index < cases_.size() && ended(index)) ++index;
  return index;
}

bool HangDetector::all_ready() const {
  return std::all_of(processes_.begin(), processes_.end(),
                     [](const RankProcess& rank) { return rank.ready; });
}

bool HangDetector::all_gone() const {
  return std::all_of(processes_.begin(), processes_.end(),
                     [](const RankProcess& rank) { return rank.gone; });
}

std::vector<int> HangDetector::living_pids() const {
  std::vector<int> pids;
  for (const RankProcess& process : processes_)
    if (process.pid != 0 && !process.gone) pids.push_back(static_cast<int>(process.pid));
  return pids;
}

std::int64_t HangDetector::last_gone_ms() const {
  std::int64_t last = 0;
  for (const RankProcess& process : processes_) last = std::max(last, process.gone_ms);
  return last;
}

HangDetector::Wait HangDetector::wait_of(int rank) const {
  const std::size_t index = case_of(rank);
  const RankProgress& progress = progress_[index][rank];
  const RankProcess& process = processes_[rank];
  const auto waits = [&](Phase phase, std::int64_t since_ms, std::int64_t queued_ms) {
    return Wait{phase, cases_[index].limits_ms.at(phase), since_ms, process.queued_ms - queued_ms};
  };
  const auto since_heartbeat = [&](Phase phase) {
    return waits(phase, process.heartbeat_ms, process.heartbeat_queued_ms);
  };
  // The rank has ended all cases, or sent its last heartbeat: only the process is left to end.
  if (progress.ended) return since_heartbeat(Phase::teardown_process);
  // Before hello, between cases, or before the first phase. The limit of init covers loading
  // libraries and making communicators.
  if (!progress.begun || !progress.phase) return since_heartbeat(Phase::init);
  return waits(*progress.phase, progress.progress_ms, progress.progress_queued_ms);
}

bool HangDetector::less_advanced(int left, int right) const {
  const auto advance = [this](int rank) {
    const RankProgress& progress = progress_[case_of(rank)][rank];
    const auto ended = std::count_if(progress_.begin(), progress_.end(),
                                     [rank](const auto& ranks) { return ranks[rank].ended; });
    return std::tuple(ended, progress.ended, progress.begun,
                      progress.collective ? progress.collective->sequence : 0,
                      progress.phase.has_value(), progress.step, processes_[rank].heartbeat_ms);
  };
  return advance(left) < advance(right);
}

std::optional<int> HangDetector::stuck(const std::vector<int>& silent) const {
  std::vector<record::CollectiveProgress> ranks;
  for (int rank = 0; rank < world_size(); ++rank)
    ranks.push_back(progress_[case_of(rank)][rank].device.value_or(record::CollectiveProgress()));
  const auto stall = record::stall_of(ranks);
  // In the collective itself all are stuck alike.
  if (!stall || stall->waiting.empty()) return std::nullopt;
  return std::ranges::count(silent, stall->rank) > 0 ? std::optional(stall->rank) : std::nullopt;
}

std::optional<HangDecision> HangDetector::overdue(std::int64_t now_ms) const {
  std::int64_t late_ms = 0;  // the most by which a rank has passed its limit
  std::vector<int> silent;
  for (int rank = 0; rank < world_size(); ++rank) {
    if (processes_[rank].gone) continue;
    const Wait wait = wait_of(rank);
    const std::int64_t waited_ms = now_ms - wait.since_ms;
    late_ms = std::max(late_ms, waited_ms - wait.limit_ms);
    // The ranks that wait for the late one stopped a moment after it. A rank that moved just now is
    // not stuck.
    if (waited_ms > wait.limit_ms / 2) silent.push_back(rank);
  }
  if (late_ms <= 0) return std::nullopt;
  HangDecision decision;
  const auto by_device = stuck(silent);
  decision.missing_rank =
      by_device ? *by_device
                : *std::min_element(silent.begin(), silent.end(), [this](int left, int right) {
                    return less_advanced(left, right);
                  });
  const Wait wait = wait_of(decision.missing_rank);
  decision.silent_ms = now_ms - wait.since_ms;
  if (late_ms <= std::min(wait.queued_ms, decision.silent_ms * kExcusedTenths / 10))
    return std::nullopt;
  decision.case_index = case_of(decision.missing_rank);
  decision.phase = wait.phase;
  decision.limit_ms = wait.limit_ms;
  decision.last_collective = progress_[decision.case_index][decision.missing_rank].collective;
  for (int rank = 0; rank < world_size(); ++rank)
    if (rank != decision.missing_rank && !processes_[rank].gone)
      decision.waiting_ranks.push_back(rank);
  return decision;
}

}  // namespace graphproof::launcher

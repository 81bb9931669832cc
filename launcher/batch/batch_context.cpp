// What a BatchRun reports: how the batch ended, and what the launcher saw of each case.
#include <algorithm>
#include <system_error>
#include <utility>

#include "launcher/batch/batch_run.h"
#include "reports/record/job/rank_exit.h"
#include "reports/record/text/file.h"

namespace graphproof::launcher {
namespace {

namespace fs = std::filesystem;

std::int64_t file_bytes(const fs::path& file) {
  std::error_code absent;
  const auto bytes = fs::file_size(file, absent);
  return absent ? 0 : static_cast<std::int64_t>(bytes);
}

}  // namespace

std::vector<record::Context> BatchRun::conclude(std::int64_t now_ms) {
  stage_ = Stage::over;
  std::vector<record::Context> finished;
  if (ranks_) {
    ranks_->read_heartbeats(detector_, now_ms);
    hand_out(between_cases_->finish(ended_cases(), named(end_->ending.left_behind())), now_ms,
             finished);
    // Also the ranks that came and went between two looks at the process table.
    std::vector<int> ranks;
    for (int rank = 0; rank < detector_.world_size(); ++rank)
      ranks.push_back(static_cast<int>(detector_.process(rank).pid));
    ranks_->leftovers().look(ranks);
    const bool any_hello =
        std::any_of(ranks.begin(), ranks.end(), [](int pid) { return pid != 0; });
    if (!any_hello && end_->by_itself) {
      infra_ = read_starter_log(ranks_->starter_log()).infra;
      if (!infra_ && !request_.job.sanitizer.empty())
        infra_ =
            record::Infra{"launch", "compute-sanitizer ended before the rank began; its log is " +
                                        request_.job.sanitizer_log.string()};
    }
  }
  if (infra_) {
    for (std::size_t i = 0; i < finished_.size(); ++i) {
      if (finished_[i]) continue;
      hand_out({BetweenCases::Finished{i, {}}}, now_ms, finished);
      finished.back().infra = infra_;
    }
    return finished;
  }
  // The case in progress answers for the end, or the last one that was run if all have ended.
  const bool all_ended = detector_.current() == finished_.size();
  const std::size_t blamed = all_ended ? detector_.as_begun().back() : detector_.current();
  // No rank begins another case once it was asked to end, or once the case before has failed.
  const auto ended_by = ranks_ ? culprit() : std::nullopt;
  const bool last_has_failed = !detector_.as_begun().empty() && ended_by &&
                               ended_by->exit == record::Exit{"exited", record::kExitCaseFailed};
  const bool left = (asked_in_ || last_has_failed) && !detector_.begun(blamed);
  if (!finished_[blamed] && !left && (!stopped_ || all_ended)) {
    finished_[blamed] = true;
    finished.push_back(last_context(blamed, now_ms));
  }
  return finished;
}

record::Context BatchRun::last_context(std::size_t index, std::int64_t now_ms) {
  const std::optional<Exit> starter = starter_exit();
  const std::optional<Culprit> culprit = this->culprit();
  // The time that it took to look at a hang and to end it is not the case's.
  record::Context last = context(index, inspection_ ? inspection_->since_ms() : now_ms);
  for (record::RankContext& rank : last.ranks)
    rank.exit = exit_of(rank.rank, detector_, culprit, starter, end_->ending.signal());
  last.cleanup = cleanup();
  if (inspection_) {
    last.ended = "killed";
    last.hang = inspection_->hang();
    const RankProgress& missing = detector_.progress(index, last.hang->missing_rank);
    last.hang->went_on = missing.ended || missing.progress_ms > inspection_->since_ms();
    return last;
  }
  last.infra = ended_from_outside(culprit, starter);
  if (last.infra || culprit) last.ended = "died";
  if (culprit && !(starter && starter->signalled)) {
    const RankProgress& progress = detector_.progress(index, culprit->rank);
    last.first_dead =
        record::FirstDead{culprit->rank, culprit->exit,
                          progress.ended ? record::Phase::teardown_process : progress.phase};
  }
  return last;
}

std::optional<Exit> BatchRun::starter_exit() const {
  return end_->by_itself ? ranks_->starter_exit() : std::nullopt;
}

/// Nothing if the launcher ended the batch.
std::optional<Culprit> BatchRun::culprit() const {
  if (inspection_ || stopped_) return std::nullopt;
  return launcher::culprit(detector_, read_starter_log(ranks_->starter_log()), starter_exit());
}

void BatchRun::hand_out(const std::vector<BetweenCases::Finished>& cases, std::int64_t now_ms,
                        std::vector<record::Context>& finished) {
  for (const auto& [index, left] : cases) {
    finished_[index] = true;
    finished.push_back(context(index, now_ms));
    finished.back().cleanup = left;
  }
}

std::vector<std::size_t> BatchRun::ended_cases() const {
  std::vector<std::size_t> ended;
  for (const std::size_t index : detector_.as_begun())
    if (!finished_[index] && detector_.ended(index)) ended.push_back(index);
  // The last case that is run waits for the end of the processes: how they end and what they leave
  // behind belongs to it.
  if (!ended.empty() && detector_.current() == finished_.size()) ended.pop_back();
  return ended;
}

record::Cleanup BatchRun::cleanup() {
  // What a killed process leaves lying is not its own doing.
  record::Cleanup found = ranks_->leftovers().after_batch(!end_->by_itself);
  found.processes = named(end_->by_itself ? end_->ending.left_behind() : end_->ending.unkillable());
  ranks_->leftovers().leave_out_reported(found);
  found.gpu_memory = gpu_memory_.left_in_use(successor_pids());
  return found;
}

record::Context context_of(const BatchRequest& request, std::size_t index) {
  const record::Batch& batch = request.batch;
  const record::PlanLine& line = request.attempts[index].line;
  record::Context context;
  context.run_id = batch.run_id;
  context.case_id = line.id;
  context.attempt = batch.cases[index].attempt;
  context.batch = batch.batch;
  context.device = batch.device;
  context.isolation = batch.isolation;
  context.engine = request.launcher;
  context.start = index == 0 && !request.prestarted ? "cold" : "warm";
  context.world_size = batch.world_size;
  context.limits_ms = request.limits_ms[index];
  context.expect = line.expect;
  context.axes = line.axes;
  context.required_checks = line.required_checks;
  context.ended = "finished";
  context.again = request.attempts[index].again;
  for (int rank = 0; rank < batch.world_size; ++rank) {
    context.ranks.push_back({.rank = rank});
    context.ranks.back().log.file =
        "batches/" + batch.batch + "/rank-" + std::to_string(rank) + ".log";
  }
  return context;
}

record::Context BatchRun::context(std::size_t index, std::int64_t now_ms) const {
  const record::Batch& batch = request_.batch;
  record::Context context = context_of(request_, index);
  std::int64_t begin_ms = now_ms, end_ms = 0;
  for (int rank = 0; rank < batch.world_size; ++rank) {
    const RankProgress& progress = detector_.progress(index, rank);
    if (progress.begun) begin_ms = std::min(begin_ms, progress.begun_ms);
    end_ms = std::max(end_ms, progress.ended ? progress.ended_ms : now_ms);
  }
  if (!detector_.begun(index)) begin_ms = started_ms_;
  context.seconds = static_cast<double>(end_ms - begin_ms) / 1000.0;
  for (int rank = 0; rank < batch.world_size; ++rank) {
    const RankProcess& process = detector_.process(rank);
    const RankProgress& progress = detector_.progress(index, rank);
    record::RankContext& seen = context.ranks[rank];
    seen.pid = process.pid;
    seen.case_ended = progress.ended;
    seen.phase = progress.phase;
    seen.arm = progress.arm;
    seen.step = progress.step;
    seen.collective = progress.collective;
    seen.progress = progress.device;
    // A rank may have gone on after the end, while a hang was looked at.
    seen.silent_ms = std::max<std::int64_t>(0, end_ms - (progress.ended   ? progress.ended_ms
                                                         : progress.begun ? progress.progress_ms
                                                                          : process.heartbeat_ms));
    seen.log.begin = progress.log_begin.value_or(0);
    seen.log.end = progress.log_end.value_or(
        std::max(seen.log.begin, file_bytes(request_.run_folder / seen.log.file)));
  }
  return context;
}

std::string BatchRun::now_doing() const {
  const std::size_t current = std::min(detector_.current(), finished_.size() - 1);
  std::string text = request_.attempts[current].line.name;
  const RankProgress& progress = detector_.progress(current, 0);
  if (progress.phase) text += " " + std::string(record::name(*progress.phase));
  return text;
}

record::LiveCase BatchRun::live(std::int64_t now_ms) const {
  const std::size_t current = std::min(detector_.current(), finished_.size() - 1);
  const record::BatchCase& one = request_.batch.cases[current];
  record::LiveCase live{.case_id = one.id,
                        .name = one.name,
                        .attempt = one.attempt,
                        .batch = request_.batch.batch,
                        .ranks = {}};
  for (int rank = 0; rank < detector_.world_size(); ++rank) {
    const RankProgress& progress = detector_.progress(current, rank);
    live.ranks.push_back({.rank = rank,
                          .pid = detector_.process(rank).pid,
                          .phase = progress.phase,
                          .arm = progress.arm,
                          .step = progress.step,
                          .silent_ms = now_ms - detector_.process(rank).heartbeat_ms});
  }
  return live;
}

}  // namespace graphproof::launcher

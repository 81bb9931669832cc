// What a BatchRun tells: how a batch ended and whose doing that was, and what the launcher saw of
// each case.
#include <signal.h>

#include <algorithm>
#include <system_error>
#include <utility>

#include "launcher/batch/batch_run.h"
#include "reports/record/text/file.h"

namespace graphproof::launcher {
namespace {

namespace fs = std::filesystem;

std::int64_t file_bytes(const fs::path& file) {
  std::error_code absent;
  const auto bytes = fs::file_size(file, absent);
  return absent ? 0 : static_cast<std::int64_t>(bytes);
}

/// What a shell or mpirun says of a process that ended by a signal: 128 and the signal.
record::Exit from_starter_exit(const Exit& exit) {
  if (exit.signalled) return {"signal", exit.value};
  return exit.value > 128 ? record::Exit{"signal", exit.value - 128}
                          : record::Exit{"exited", exit.value};
}

}  // namespace

void BatchRun::conclude(std::int64_t now_ms, std::vector<record::Context>& finished) {
  stage_ = Stage::over;
  if (child_) {
    read_heartbeats(now_ms);
    finish_remaining_cases(now_ms, finished);
    // Also those that came and went between two looks at the process table.
    std::vector<int> ranks;
    for (int rank = 0; rank < detector_.world_size(); ++rank)
      ranks.push_back(static_cast<int>(detector_.process(rank).pid));
    leftovers_->look(ranks);
    report_ = read_starter_log(record::read_text(batch_folder_ / "starter.log"));
    bool any_hello = false;
    for (int rank = 0; rank < detector_.world_size(); ++rank)
      any_hello = any_hello || detector_.process(rank).pid != 0;
    if (!any_hello && by_itself_) infra_ = report_.infra;
  }
  if (infra_) {
    for (std::size_t i = 0; i < finished_.size(); ++i) {
      if (finished_[i]) continue;
      finish(i, now_ms, {}, finished);
      finished.back().infra = infra_;
    }
    return;
  }
  // The case in progress answers for the end, or the last one that was run if all have ended.
  const bool all_ended = detector_.current() == finished_.size();
  const std::size_t blamed = all_ended ? detector_.as_begun().back() : detector_.current();
  if (finished_[blamed] || (stopped_ && !all_ended)) return;
  finished_[blamed] = true;
  culprit_ = culprit();
  // The time that it took to look at a hang and to end it is not the case's.
  record::Context last = context(blamed, hang_ ? hung_ms_ : now_ms);
  for (record::RankContext& rank : last.ranks) rank.exit = exit_of(rank.rank);
  last.cleanup = cleanup();
  if (hang_) {
    last.ended = "killed";
    last.hang = record::Hang{hang_->phase,         hang_->limit_ms,        hang_->missing_rank,
                             hang_->waiting_ranks, hang_->last_collective, "stacks"};
  } else if (by_itself_ && child_->poll()->signalled) {
    const int signal = child_->poll()->value;
    last.ended = "died";
    last.infra = record::Infra{signal == SIGKILL || signal == SIGTERM ? "preempted" : "launch",
                               "what started its ranks ended by signal " + std::to_string(signal) +
                                   ", which we did not send"};
  } else if (culprit_) {
    const RankProgress& progress = detector_.progress(blamed, culprit_->rank);
    last.ended = "died";
    last.first_dead =
        record::FirstDead{culprit_->rank, culprit_->exit,
                          progress.ended ? record::Phase::teardown_process : progress.phase};
    // Nothing of a case sends SIGTERM. Whoever ends an allocation sends it to every process of it,
    // and a rank may be gone before the starter and the agent have theirs.
    if (culprit_->exit == record::Exit{"signal", SIGTERM})
      last.infra = record::Infra{"preempted", "rank " + std::to_string(culprit_->rank) +
                                                  " was ended by SIGTERM, which we did not send"};
  }
  finished.push_back(std::move(last));
}

std::optional<BatchRun::Culprit> BatchRun::culprit() const {
  if (hang_ || stopped_) return std::nullopt;
  if (report_.rank && report_.exit && *report_.rank < detector_.world_size())
    return Culprit{*report_.rank, *report_.exit};
  const std::optional<int> dead = detector_.first_dead();
  // mpirun ends the batch for every other end of a rank; it went on, so the rank left without a
  // word and with status 0.
  if (!by_itself_) return dead ? std::optional(Culprit{*dead, {"exited", 0}}) : std::nullopt;
  const Exit starter = *child_->poll();
  if (starter == Exit{}) return std::nullopt;
  // mpirun now and then keeps the name to itself, but never the exit code. The first that was gone
  // is the likeliest.
  int first = 0;
  for (int rank = 1; rank < detector_.world_size(); ++rank)
    if (detector_.process(rank).gone &&
        detector_.process(rank).gone_ms < detector_.process(first).gone_ms)
      first = rank;
  return Culprit{dead.value_or(first), from_starter_exit(starter)};
}

record::Exit BatchRun::exit_of(int rank) const {
  if (culprit_ && culprit_->rank == rank) return culprit_->exit;
  const RankProcess& process = detector_.process(rank);
  if (process.bye || (by_itself_ && child_->poll() == Exit{})) return {"exited", 0};
  // mpirun ends the others with SIGTERM first; our own signal is known.
  return {"killed", ending_ && ending_->signal() != 0 ? ending_->signal() : SIGTERM};
}

record::Cleanup BatchRun::cleanup() {
  // What a killed process leaves lying is the killer's doing.
  record::Cleanup found = leftovers_->after_batch(!by_itself_);
  found.processes = named(by_itself_ ? ending_->left_behind() : ending_->unkillable());
  leftovers_->leave_out_reported(found);
  if (gpus_before_.empty()) return found;
  found.gpu_memory.emplace();
  const std::vector<GpuUse> after = gpus_in_use();
  for (std::size_t i = 0; i < after.size(); ++i)
    if (const std::int64_t more = after[i].more_than(gpus_before_[i]); more > kGpuNoise_bytes)
      found.gpu_memory->push_back({static_cast<int>(i), more});
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
    seen.silent_ms = end_ms - (progress.ended   ? progress.ended_ms
                               : progress.begun ? progress.progress_ms
                                                : process.heartbeat_ms);
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

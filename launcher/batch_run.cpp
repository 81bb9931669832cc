#include "launcher/batch_run.h"

#include <signal.h>

#include <algorithm>
#include <fstream>
#include <system_error>
#include <utility>

#include "reports/record/file.h"

namespace graphproof::launcher {
namespace {

namespace fs = std::filesystem;

// How often the process table is read. A death is noticed within this time, and also by mpirun's own end.
constexpr std::int64_t kLook_ms = 100;
// The memory maps of a rank are long; shared memory stays mapped for longer than this.
constexpr std::int64_t kLookAtShm_ms = 1000;
// Ending reads every process's environment.
constexpr std::int64_t kEnding_ms = 25;
// Rejected heartbeat lines that are kept for the reader of batches/B.
constexpr std::int64_t kRejectedKept = 100;

std::vector<Watch::WatchedCase> watched(const BatchRequest& request) {
  std::vector<Watch::WatchedCase> cases;
  for (std::size_t i = 0; i < request.batch.cases.size(); ++i)
    cases.push_back({request.batch.cases[i].id, request.batch.cases[i].attempt, request.limits_ms.at(i)});
  return cases;
}

std::set<std::string> shm_entries() {
  std::set<std::string> names;
  std::error_code absent;
  for (const auto& entry : fs::directory_iterator("/dev/shm", absent)) names.insert(entry.path());
  return names;
}

std::string quoted(const std::string& word) {
  if (word.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./=:,") == word.npos &&
      !word.empty())
    return word;
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

std::int64_t file_bytes(const fs::path& file) {
  std::error_code absent;
  const auto bytes = fs::file_size(file, absent);
  return absent ? 0 : static_cast<std::int64_t>(bytes);
}

std::vector<std::string> named(const std::vector<Process>& processes) {
  std::vector<std::string> names;
  for (const Process& process : processes) names.push_back(std::to_string(process.pid) + " " + process.command);
  return names;
}

/// What a shell or mpirun says of a process that ended by a signal: 128 and the signal.
record::Exit from_starter_exit(const Exit& exit) {
  if (exit.signalled) return {"signal", exit.value};
  return exit.value > 128 ? record::Exit{"signal", exit.value - 128} : record::Exit{"exited", exit.value};
}

}  // namespace

fs::path attempt_folder(const std::string& case_id, int attempt) {
  return fs::path("cases") / case_id / ("attempt-" + std::to_string(attempt));
}

BatchRun::BatchRun(BatchRequest request, std::int64_t now_ms)
    : request_(std::move(request)), batch_folder_(request_.run_folder / "batches" / request_.batch.batch),
      watch_(request_.batch.world_size, watched(request_), now_ms), finished_(request_.batch.cases.size()),
      started_ms_(now_ms), ended_ms_(now_ms) {
  record::Batch& batch = request_.batch;
  try {
    fs::create_directories(batch_folder_);
    node_folder_ = std::make_unique<PrivateFolder>(request_.node_folder / batch.batch);
    shm_folder_ = std::make_unique<PrivateFolder>(request_.shm_folder / batch.batch);
    pipe_ = std::make_unique<HeartbeatPipe>(node_folder_->path() / "heartbeat");
    batch.heartbeat_fifo = pipe_->path();
    batch.store = batch_folder_ / "store";
    batch.log_folder = batch_folder_;
    batch.mark = batch.run_id + "." + batch.batch;
    for (record::BatchCase& one : batch.cases) {
      // What an earlier start of the same attempt left is not evidence of this one.
      fs::remove_all(one.evidence_folder);
      fs::create_directories(one.evidence_folder);
    }
    Job& job = request_.job;
    job.batch_file = batch_folder_ / "batch.json";
    job.mark = batch.mark;
    job.node_folder = node_folder_->path();
    job.shm_folder = shm_folder_->path();
    const Command command = local_command(job, own_environment());
    write_files(command);
    shm_before_ = shm_entries();
    gpu_bytes_before_ = gpu_bytes();
    child_ = std::make_unique<Child>(command, batch_folder_ / "mpirun.log");
  } catch (const std::system_error& error) {
    infra_ = record::Infra{"launch", error.what()};
  } catch (const record::WriteError& error) {
    infra_ = record::Infra{"disk", error.what()};
  }
}

void BatchRun::write_files(const Command& command) const {
  record::write_json(request_.job.batch_file, record::to_json(request_.batch));
  std::string line;
  for (const std::string& argument : command.arguments) line += (line.empty() ? "" : " ") + quoted(argument);
  record::write_atomically(batch_folder_ / "command", line + "\n");
  std::string variables;
  for (const auto& [name, value] : redacted(command.environment)) variables += name + "=" + value + "\n";
  record::write_atomically(batch_folder_ / "env", variables);
}

std::vector<record::Context> BatchRun::step(std::int64_t now_ms) {
  std::vector<record::Context> finished;
  if (stage_ == Stage::over) return finished;
  if (!child_) {
    conclude(now_ms, finished);
    return finished;
  }
  // Before anything is decided: a line that has arrived counts, however late this round is.
  read_heartbeats(now_ms);
  look_at_processes(now_ms);
  finish_ended_cases(now_ms, finished);
  if (stage_ == Stage::running) decide(now_ms);
  if (stage_ == Stage::stacks && stacks_->step(now_ms)) end(false, now_ms);
  if (stage_ == Stage::ending && now_ms - ending_ms_ >= kEnding_ms) {
    ending_ms_ = now_ms;
    if (!ending_->step(now_ms)) return finished;
    stage_ = Stage::gpu;
    child_->poll();
    ended_ms_ = now_ms;
  }
  if (stage_ == Stage::gpu && (gpu_memory_is_back() || now_ms - ended_ms_ > kGpuSettle_ms)) conclude(now_ms, finished);
  return finished;
}

void BatchRun::read_heartbeats(std::int64_t now_ms) {
  for (const std::string& line : pipe_->read_lines()) {
    bool accepted = false;
    try {
      accepted = watch_.heartbeat(record::heartbeat_from(line, pipe_->path()), now_ms);
    } catch (const record::ReadError&) {
      // Not a heartbeat: kept below, and no sign of life.
    }
    if (!accepted && ++rejected_lines_ <= kRejectedKept)
      std::ofstream(batch_folder_ / "heartbeat.rejected", std::ios::app) << line << "\n";
  }
}

void BatchRun::look_at_processes(std::int64_t now_ms) {
  if (now_ms - looked_ms_ < kLook_ms) return;
  looked_ms_ = now_ms;
  const bool look_at_shm = now_ms - looked_at_shm_ms_ >= kLookAtShm_ms;
  if (look_at_shm) looked_at_shm_ms_ = now_ms;
  for (int rank = 0; rank < watch_.world_size(); ++rank) {
    const RankProcess& process = watch_.process(rank);
    if (process.pid == 0 || process.gone) continue;
    const int pid = static_cast<int>(process.pid);
    if (!running_process(pid)) {
      watch_.gone(rank, now_ms);
    } else if (look_at_shm) {
      const auto mapped = mapped_shm(pid);
      shm_seen_.insert(mapped.begin(), mapped.end());
    }
  }
}

void BatchRun::decide(std::int64_t now_ms) {
  if (child_->poll()) return end(true, now_ms);
  // The others wait for a dead rank until mpirun ends them: that is its death and not their hang.
  if (const auto dead = watch_.first_dead()) {
    if (now_ms - watch_.process(*dead).gone_ms > kStarterLinger_ms) end(false, now_ms);
    return;
  }
  if (watch_.all_gone() && now_ms - watch_.last_gone_ms() > kStarterLinger_ms) return end(false, now_ms);
  if (last_case_ && watch_.current() > *last_case_ && watch_.current() < finished_.size()) return stop(now_ms);
  if (const auto hang = watch_.overdue(now_ms)) {
    hang_ = hang;
    hung_ms_ = now_ms;
    take_stacks(*hang, now_ms);
  }
}

void BatchRun::take_stacks(const HangDecision& hang, std::int64_t now_ms) {
  // The missing rank first: the time may not be enough for all.
  std::vector<StackCollection::Target> targets{{hang.missing_rank, watch_.process(hang.missing_rank).pid}};
  for (const int rank : hang.waiting_ranks) targets.push_back({rank, watch_.process(rank).pid});
  const record::BatchCase& hung = request_.batch.cases[hang.case_index];
  // Where a planted hang hangs is known.
  const bool debugger = request_.lines[hang.case_index].expect.kind != "fault";
  stacks_.emplace(fs::path(hung.evidence_folder) / "stacks", targets, debugger, now_ms);
  stage_ = Stage::stacks;
}

void BatchRun::stop_after_case() {
  if (!last_case_) last_case_ = watch_.current();
}

void BatchRun::stop(std::int64_t now_ms) {
  if (stage_ != Stage::running || !child_) return;
  stopped_ = true;
  end(false, now_ms);
}

void BatchRun::end(bool by_itself, std::int64_t now_ms) {
  by_itself_ = by_itself;
  ending_.emplace(child_->pid(), request_.batch.mark, by_itself, now_ms);
  stage_ = Stage::ending;
}

void BatchRun::finish_ended_cases(std::int64_t now_ms, std::vector<record::Context>& finished) {
  // The last case waits for the processes' end: how they end and what they leave behind belongs to it.
  for (std::size_t i = 0; i + 1 < finished_.size() && watch_.ended(i); ++i) {
    if (finished_[i]) continue;
    finished_[i] = true;
    finished.push_back(context(i, now_ms));
  }
}

void BatchRun::conclude(std::int64_t now_ms, std::vector<record::Context>& finished) {
  stage_ = Stage::over;
  if (child_) {
    read_heartbeats(now_ms);
    finish_ended_cases(now_ms, finished);
    report_ = read_starter_log(record::read_text(batch_folder_ / "mpirun.log"));
    bool any_hello = false;
    for (int rank = 0; rank < watch_.world_size(); ++rank) any_hello = any_hello || watch_.process(rank).pid != 0;
    if (!any_hello && by_itself_) infra_ = report_.infra;
  }
  if (infra_) {
    for (std::size_t i = 0; i < finished_.size(); ++i) {
      if (finished_[i]) continue;
      finished_[i] = true;
      finished.push_back(context(i, now_ms));
      finished.back().infra = infra_;
    }
    return;
  }
  // The case in progress answers for the end, or the last one if all have ended.
  const std::size_t blamed = std::min(watch_.current(), finished_.size() - 1);
  const bool all_ended = watch_.current() == finished_.size();
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
                               "mpirun itself ended by signal " + std::to_string(signal) + ", which we did not send"};
  } else if (culprit_) {
    const RankProgress& progress = watch_.progress(blamed, culprit_->rank);
    last.ended = "died";
    last.first_dead = record::FirstDead{culprit_->rank, culprit_->exit,
                                        progress.ended ? record::Phase::teardown_process : progress.phase};
  }
  finished.push_back(std::move(last));
}

std::optional<BatchRun::Culprit> BatchRun::culprit() const {
  if (hang_ || stopped_) return std::nullopt;
  if (report_.rank && report_.exit && *report_.rank < watch_.world_size()) return Culprit{*report_.rank, *report_.exit};
  const std::optional<int> dead = watch_.first_dead();
  // mpirun ends the batch for every other end of a rank; it went on, so the rank left without a word and with status 0.
  if (!by_itself_) return dead ? std::optional(Culprit{*dead, {"exited", 0}}) : std::nullopt;
  const Exit starter = *child_->poll();
  if (starter == Exit{}) return std::nullopt;
  // mpirun now and then keeps the name to itself, but never the exit code. The first that was gone is the likeliest.
  int first = 0;
  for (int rank = 1; rank < watch_.world_size(); ++rank)
    if (watch_.process(rank).gone && watch_.process(rank).gone_ms < watch_.process(first).gone_ms) first = rank;
  return Culprit{dead.value_or(first), from_starter_exit(starter)};
}

record::Exit BatchRun::exit_of(int rank) const {
  if (culprit_ && culprit_->rank == rank) return culprit_->exit;
  const RankProcess& process = watch_.process(rank);
  if (process.bye || (by_itself_ && child_->poll() == Exit{})) return {"exited", 0};
  // mpirun ends the others with SIGTERM first; our own signal is known.
  return {"killed", ending_ && ending_->signal() != 0 ? ending_->signal() : SIGTERM};
}

record::Cleanup BatchRun::cleanup() const {
  record::Cleanup found;
  found.processes = named(by_itself_ ? ending_->left_behind() : ending_->immortal());
  if (!gpu_bytes_before_.empty()) {
    found.gpu_memory.emplace();
    const std::vector<std::int64_t> after = gpu_bytes();
    for (std::size_t i = 0; i < after.size(); ++i)
      if (const std::int64_t more = after[i] - gpu_bytes_before_[i]; more > kGpuNoise_bytes)
        found.gpu_memory->push_back({static_cast<int>(i), more});
  }
  // What a killed process leaves lying is the killer's doing, and goes with the folders.
  if (!by_itself_) return found;
  for (const std::string& name : node_folder_->content())
    if (name != "heartbeat") found.files.push_back(name);
  found.shm = shm_folder_->content();
  for (const std::string& entry : shm_entries())
    if (shm_seen_.count(entry) != 0 && shm_before_.count(entry) == 0) found.shm.push_back(entry);
  return found;
}

record::Context BatchRun::context(std::size_t index, std::int64_t now_ms) const {
  const record::Batch& batch = request_.batch;
  const record::PlanLine& line = request_.lines[index];
  record::Context context;
  context.run_id = batch.run_id;
  context.case_id = line.id;
  context.attempt = batch.cases[index].attempt;
  context.batch = batch.batch;
  context.device = batch.device;
  context.isolation = batch.isolation;
  context.engine = "local";
  context.start = index == 0 ? "cold" : "warm";
  context.world_size = batch.world_size;
  context.limits_ms = request_.limits_ms[index];
  context.expect = line.expect;
  context.axes = line.axes;
  context.required_checks = line.required_checks;
  context.ended = "finished";
  std::int64_t begin_ms = now_ms, end_ms = 0;
  for (int rank = 0; rank < batch.world_size; ++rank) {
    const RankProgress& progress = watch_.progress(index, rank);
    if (progress.begun) begin_ms = std::min(begin_ms, progress.begun_ms);
    end_ms = std::max(end_ms, progress.ended ? progress.ended_ms : now_ms);
  }
  if (!watch_.begun(index)) begin_ms = started_ms_;
  context.seconds = static_cast<double>(end_ms - begin_ms) / 1000.0;
  for (int rank = 0; rank < batch.world_size; ++rank) {
    const RankProcess& process = watch_.process(rank);
    const RankProgress& progress = watch_.progress(index, rank);
    record::RankContext seen;
    seen.rank = rank;
    seen.pid = process.pid;
    seen.case_ended = progress.ended;
    seen.phase = progress.phase;
    seen.arm = progress.arm;
    seen.step = progress.step;
    seen.collective = progress.collective;
    seen.silent_ms = end_ms - (progress.ended   ? progress.ended_ms
                              : progress.begun ? progress.progress_ms
                                               : process.heartbeat_ms);
    const std::string log = "rank-" + std::to_string(rank) + ".log";
    seen.log.file = "batches/" + batch.batch + "/" + log;
    seen.log.begin = progress.log_begin.value_or(0);
    seen.log.end = progress.log_end.value_or(std::max(seen.log.begin, file_bytes(batch_folder_ / log)));
    context.ranks.push_back(std::move(seen));
  }
  return context;
}

std::vector<std::int64_t> BatchRun::gpu_bytes() const {
  std::vector<std::int64_t> bytes;
  if (request_.gpu_memory == nullptr) return bytes;
  for (const std::string& gpu : request_.job.gpus) {
    const auto used = request_.gpu_memory->used_bytes(gpu);
    if (!used) return {};
    bytes.push_back(*used);
  }
  return bytes;
}

bool BatchRun::gpu_memory_is_back() const {
  const std::vector<std::int64_t> after = gpu_bytes();
  for (std::size_t i = 0; i < std::min(after.size(), gpu_bytes_before_.size()); ++i)
    if (after[i] - gpu_bytes_before_[i] > kGpuNoise_bytes) return false;
  return true;
}

std::vector<record::PlanLine> BatchRun::not_done() const {
  std::vector<record::PlanLine> lines;
  for (std::size_t i = 0; i < finished_.size(); ++i)
    if (!finished_[i]) lines.push_back(request_.lines[i]);
  return lines;
}

std::string BatchRun::now_doing() const {
  const std::size_t current = std::min(watch_.current(), finished_.size() - 1);
  std::string text = request_.lines[current].name;
  const RankProgress& progress = watch_.progress(current, 0);
  if (progress.phase) text += " " + std::string(record::name(*progress.phase));
  return text;
}

}  // namespace graphproof::launcher

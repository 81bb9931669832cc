#include "launcher/batch/batch_run.h"

#include <signal.h>

#include <algorithm>
#include <fstream>
#include <system_error>
#include <utility>

#include "reports/record/job/warm_start.h"
#include "reports/record/text/file.h"

namespace graphproof::launcher {
namespace {

namespace fs = std::filesystem;

// How often the process table is read. A death is noticed within this time, and also by mpirun's
// own end.
constexpr std::int64_t kLook_ms = 100;
// A rank has hundreds of descriptors; a listening socket stays open for longer than this.
constexpr std::int64_t kLookAtPorts_ms = 1000;
// What is seen between two cases may be on its way out.
constexpr std::int64_t kSuspicion_ms = 1000;
// Ending reads every process's environment.
constexpr std::int64_t kEnding_ms = 25;
// Rejected heartbeat lines that are kept for the reader of batches/B.
constexpr std::int64_t kRejectedKept = 100;

std::vector<HangDetector::Case> detector_cases(const BatchRequest& request) {
  std::vector<HangDetector::Case> cases;
  for (std::size_t i = 0; i < request.batch.cases.size(); ++i)
    cases.push_back(
        {request.batch.cases[i].id, request.batch.cases[i].attempt, request.limits_ms.at(i)});
  return cases;
}

std::string quoted(const std::string& word) {
  if (word.find_first_not_of(
          "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./=:,") == word.npos &&
      !word.empty())
    return word;
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

}  // namespace

BatchRun::BatchRun(BatchRequest request, std::int64_t now_ms)
    : request_(std::move(request)),
      batch_folder_(request_.run_folder / "batches" / request_.batch.batch),
      detector_(request_.batch.world_size, detector_cases(request_), now_ms),
      finished_(request_.batch.cases.size()),
      started_ms_(now_ms),
      ended_ms_(now_ms),
      prestarted_(request_.prestarted) {
  record::Batch& batch = request_.batch;
  infra_ = request_.refused;
  if (infra_) return;
  try {
    fs::create_directories(batch_folder_);
    node_folder_ = std::make_unique<PrivateFolder>(request_.node_folder / batch.batch);
    shm_folder_ = std::make_unique<PrivateFolder>(request_.shm_folder / batch.batch);
    pipe_ = std::make_unique<HeartbeatPipe>(node_folder_->path() / "heartbeat");
    batch.heartbeat_fifo = pipe_->path();
    batch.store = batch_folder_ / "store";
    fs::remove_all(batch.store);  // an earlier start's ranks would answer
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
    if (prestarted_) job.environment[record::kGoVariable] = shm_folder_->path() / record::kGoFile;
    const Command command = local_command(job, own_environment());
    write_files(command);
    if (batch.device == "cuda") ras_address_ = ras_address(command.environment);
    leftovers_ = std::make_unique<Leftovers>(*request_.processes, *node_folder_, *shm_folder_,
                                             batch.device == "sim");
    gpus_before_ = request_.clean_gpus.empty() ? gpus_in_use() : request_.clean_gpus;
    cgroup_ = request_.processes->make_group(batch.mark);
    child_ = std::make_unique<Child>(command, batch_folder_ / "starter.log", fs::path(),
                                     cgroup_ ? cgroup_->folder() : fs::path());
    leftovers_->started(child_->pid(), batch.mark);
    if (request_.gpu_health) gpu_troubles_ = request_.gpu_health->count();
  } catch (const std::system_error& error) {
    infra_ = record::Infra{"launch", error.what()};
  } catch (const record::WriteError& error) {
    infra_ = record::Infra{"disk", error.what()};
  }
  prestart_failed_ = prestarted_ && infra_;
}

void BatchRun::write_files(const Command& command) const {
  // A batch is never gone on with: what its ranks read need not outlast this host.
  record::write_json(request_.job.batch_file, record::to_json(request_.batch),
                     record::Survives::kill);
  std::string line;
  for (const std::string& argument : command.arguments)
    line += (line.empty() ? "" : " ") + quoted(argument);
  record::write_atomically(batch_folder_ / "command", line + "\n", record::Survives::kill);
  std::string variables;
  for (const auto& [name, value] : redacted(command.environment))
    variables += name + "=" + value + "\n";
  record::write_atomically(batch_folder_ / "env", variables, record::Survives::kill);
}

std::vector<record::Context> BatchRun::step(std::int64_t now_ms) {
  std::vector<record::Context> finished = advance(now_ms);
  look_at_gpus(now_ms, finished);
  if (const auto successor = successor_.lock(); successor && successor_may_use_device())
    successor->allow_device();
  return finished;
}

std::shared_ptr<BatchRun> BatchRun::prestart(BatchRequest next, std::int64_t now_ms) {
  next.prestarted = true;
  next.clean_gpus = gpus_before_;
  const auto successor = std::make_shared<BatchRun>(std::move(next), now_ms);
  successor_ = successor;
  return successor;
}

bool BatchRun::successor_may_use_device() const {
  // A GPU's used memory is measured by nearly every case until its end, and what remains must be
  // told apart afterwards.
  return request_.batch.device != "cuda" || (draining() && !alone_ && owns_visible_gpu_memory());
}

void BatchRun::look_at_gpus(std::int64_t now_ms, std::vector<record::Context>& finished) {
  if (request_.gpu_health == nullptr || request_.job.gpus.empty() || prestarted_) return;
  // A report belongs to the case that runs when it comes, so the driver is asked before the case is
  // given out.
  request_.gpu_health->look(now_ms, !finished.empty());
  for (const GpuTrouble& trouble : request_.gpu_health->since(gpu_troubles_, request_.job.gpus)) {
    const std::string text = "GPU " + trouble.gpu + ": " + trouble.what;
    std::ofstream(batch_folder_ / "driver.log", std::ios::app) << text << "\n";
    if (trouble.hardware) gpu_trouble_.insert(text);
  }
  gpu_troubles_ = request_.gpu_health->count();
  if (finished.empty() || gpu_trouble_.empty()) return;
  std::string why;
  for (const std::string& text : gpu_trouble_) why += (why.empty() ? "" : "; ") + text;
  gpu_trouble_.clear();
  for (record::Context& context : finished)
    if (!context.infra) context.infra = record::Infra{"gpu", why};
}

std::vector<record::Context> BatchRun::advance(std::int64_t now_ms) {
  std::vector<record::Context> finished;
  if (stage_ == Stage::over) return finished;
  if (!child_) {
    // Of ranks that could not be started ahead no case is decided: it starts again, cold.
    if (!prestart_failed_) conclude(now_ms, finished);
    return finished;
  }
  // Before anything is decided: a line that has arrived counts, however late this round is.
  read_heartbeats(now_ms);
  look_at_processes(now_ms);
  if (prestarted_ && stage_ == Stage::running) {
    step_prestarted(now_ms);
    return finished;
  }
  if (stage_ == Stage::running) finish_ended_cases(now_ms, finished);
  if (stage_ == Stage::running) decide(now_ms);
  if (stage_ == Stage::stacks) {
    const bool taken = stacks_->step(now_ms), told = !ras_ || ras_->step(now_ms),
               recorded = flight_data_->step(now_ms);
    if (taken && told && recorded) end(false, now_ms);
  }
  if (stage_ == Stage::ending && now_ms - ending_ms_ >= kEnding_ms) {
    ending_ms_ = now_ms;
    if (!ending_->step(now_ms)) return finished;
    stage_ = Stage::gpu;
    child_->poll();
    ended_ms_ = now_ms;
  }
  if (stage_ == Stage::gpu && gpu_memory_is_settled(now_ms)) conclude(now_ms, finished);
  return finished;
}

void BatchRun::step_prestarted(std::int64_t now_ms) {
  const std::int64_t limit_ms = request_.batch.limits_ms.at(record::Phase::init);
  if (may_use_device_ && device_ms_ == 0) {
    device_ms_ = now_ms;
    std::ofstream(shm_folder_->path() / (std::string(record::kGoFile) + record::kDeviceSuffix))
        .flush();
  }
  prestart_failed_ = prestart_failed_ || child_->poll() || detector_.first_dead() ||
                     (device_ms_ != 0 && !detector_.all_ready() && now_ms - device_ms_ > limit_ms);
  if (prestart_failed_ || !begin_ || !detector_.all_ready()) return;
  prestarted_ = false;
  if (request_.gpu_health) gpu_troubles_ = request_.gpu_health->count();
  started_ms_ = now_ms;
  detector_.restart(now_ms);
  std::ofstream(shm_folder_->path() / record::kGoFile).flush();
}

void BatchRun::read_heartbeats(std::int64_t now_ms) {
  for (const std::string& line : pipe_->read_lines()) {
    bool accepted = false;
    try {
      accepted = detector_.heartbeat(record::heartbeat_from(line, pipe_->path()), now_ms);
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
  for (int rank = 0; rank < detector_.world_size(); ++rank) {
    const RankProcess& process = detector_.process(rank);
    if (process.pid != 0 && !process.gone && !running_process(static_cast<int>(process.pid)))
      detector_.gone(rank, now_ms);
  }
  const std::vector<int> ranks = living_ranks();
  leftovers_->look(ranks);
  if (now_ms - looked_at_ports_ms_ < kLookAtPorts_ms) return;
  looked_at_ports_ms_ = now_ms;
  leftovers_->look_at_ports(ranks);
}

std::vector<int> BatchRun::living_ranks() const {
  std::vector<int> pids;
  for (int rank = 0; rank < detector_.world_size(); ++rank)
    if (const RankProcess& process = detector_.process(rank); process.pid != 0 && !process.gone)
      pids.push_back(static_cast<int>(process.pid));
  return pids;
}

void BatchRun::decide(std::int64_t now_ms) {
  if (child_->poll()) return end(true, now_ms);
  // The others wait for a dead rank until mpirun ends them: that is its death and not their hang.
  if (const auto dead = detector_.first_dead()) {
    if (now_ms - detector_.process(*dead).gone_ms > kStarterLinger_ms) end(false, now_ms);
    return;
  }
  if (detector_.all_gone() && now_ms - detector_.last_gone_ms() > kStarterLinger_ms)
    return end(false, now_ms);
  if (last_case_ && detector_.current() > *last_case_ && detector_.current() < finished_.size())
    return stop(now_ms);
  if (const auto hang = detector_.overdue(now_ms)) {
    hang_ = hang;
    hung_ms_ = now_ms;
    take_stacks(*hang, now_ms);
  }
}

void BatchRun::take_stacks(const HangDecision& hang, std::int64_t now_ms) {
  // The missing rank first: the time may not be enough for all.
  std::vector<StackCollection::Target> targets{
      {hang.missing_rank, detector_.process(hang.missing_rank).pid}};
  for (const int rank : hang.waiting_ranks) targets.push_back({rank, detector_.process(rank).pid});
  const record::BatchCase& hung = request_.batch.cases[hang.case_index];
  // Where a planted hang hangs is known.
  const record::Expect& expect = request_.attempts[hang.case_index].line.expect;
  const bool expected = expect.kind == "hazard" && expect.verdict.starts_with("fail.hang");
  const bool debugger = expect.kind != "fault" && !expected;
  const fs::path folder = fs::path(hung.evidence_folder) / "stacks";
  stacks_.emplace(folder, targets, debugger, now_ms);
  if (ras_address_) ras_.emplace(*ras_address_, folder / "nccl-ras", now_ms);
  std::vector<int> ranks;
  for (const StackCollection::Target& target : targets) ranks.push_back(target.rank);
  flight_data_.emplace(node_folder_->path(), batch_folder_, folder, ranks, now_ms);
  stage_ = Stage::stacks;
}

void BatchRun::stop_after_case() {
  if (!last_case_) last_case_ = detector_.current();
}

void BatchRun::stop(std::int64_t now_ms) {
  if (prestarted_ && !child_) stage_ = Stage::over;  // it could not even be started
  if (stage_ != Stage::running || !child_) return;
  stopped_ = true;
  end(false, now_ms);
}

void BatchRun::end(bool by_itself, std::int64_t now_ms) {
  by_itself_ = by_itself;
  ending_.emplace(*request_.processes, child_->pid(), request_.batch.mark, by_itself, now_ms,
                  leftovers_->looks_before());
  if (by_itself) {
    std::vector<int> left;
    for (const Process& process : ending_->left()) left.push_back(process.pid);
    leftovers_->look_at_ports(left);
  }
  stage_ = Stage::ending;
}

void BatchRun::finish(std::size_t index, std::int64_t now_ms, record::Cleanup cleanup,
                      std::vector<record::Context>& finished) {
  finished_[index] = true;
  finished.push_back(context(index, now_ms));
  finished.back().cleanup = std::move(cleanup);
}

std::vector<std::size_t> BatchRun::ended_cases() const {
  std::vector<std::size_t> ended;
  for (const std::size_t index : detector_.as_begun())
    if (!finished_[index] && detector_.ended(index)) ended.push_back(index);
  // The last one that is run waits for the processes' end: how they end and what they leave behind
  // belongs to it.
  if (!ended.empty() && detector_.current() == finished_.size()) ended.pop_back();
  return ended;
}

void BatchRun::finish_ended_cases(std::int64_t now_ms, std::vector<record::Context>& finished) {
  const std::vector<std::size_t> ended = ended_cases();
  if (ended.empty()) return;
  if (!suspicion_) {
    // Looking costs milliseconds; cases that are shorter than this share one look.
    if (now_ms - looked_between_ms_ < kLook_ms) return;
    looked_between_ms_ = now_ms;
    suspicion_ = Suspicion{ended.back(), now_ms, leftovers_->between_cases(living_ranks())};
  }
  record::Cleanup still;
  if (suspicion_->found != still) still = leftovers_->still_there(suspicion_->found);
  if (still != record::Cleanup{} && now_ms - suspicion_->since_ms < kSuspicion_ms) return;
  leftovers_->report(still);
  for (const std::size_t index : ended) {
    const bool suspected = index == suspicion_->case_index;
    finish(index, now_ms, suspected ? still : record::Cleanup{}, finished);
    if (suspected) break;  // who ended since then is looked at anew
  }
  suspicion_.reset();
}

void BatchRun::finish_remaining_cases(std::int64_t now_ms, std::vector<record::Context>& finished) {
  // The ranks are gone, so nothing that is there now tells which case left it: only what was
  // suspected before counts.
  for (const std::size_t index : ended_cases()) {
    record::Cleanup still;
    if (suspicion_ && suspicion_->case_index == index) {
      still = leftovers_->still_there(suspicion_->found);
      for (const std::string& process : named(ending_->left_behind()))
        if (std::find(suspicion_->found.processes.begin(), suspicion_->found.processes.end(),
                      process) != suspicion_->found.processes.end())
          still.processes.push_back(process);
      leftovers_->report(still);
    }
    finish(index, now_ms, still, finished);
  }
}

std::optional<std::int64_t> BatchRun::own_gpu_bytes(const std::string& gpu) const {
  return request_.nvml->used_bytes(gpu, living_ranks());
}

bool BatchRun::owns_visible_gpu_memory() const {
  return request_.nvml != nullptr &&
         std::all_of(request_.job.gpus.begin(), request_.job.gpus.end(),
                     [&](const std::string& gpu) { return own_gpu_bytes(gpu).has_value(); });
}

std::vector<GpuUse> BatchRun::gpus_in_use() const {
  std::vector<GpuUse> uses;
  if (request_.nvml == nullptr) return uses;
  const auto successor = successor_.lock();
  for (const std::string& gpu : request_.job.gpus) {
    auto use = request_.nvml->use(gpu);
    if (!use) return {};
    if (successor) use->bytes -= successor->own_gpu_bytes(gpu).value_or(0);
    uses.push_back(*std::move(use));
  }
  return uses;
}

bool BatchRun::gpu_memory_is_back() const {
  const std::vector<GpuUse> after = gpus_in_use();
  for (std::size_t i = 0; i < std::min(after.size(), gpus_before_.size()); ++i)
    if (after[i].more_than(gpus_before_[i]) > kGpuNoise_bytes) return false;
  return true;
}

bool BatchRun::gpu_memory_is_settled(std::int64_t now_ms) {
  if (gpu_memory_is_back()) return true;
  const auto successor = successor_.lock();
  if (alone_ && successor && successor->may_use_device_ && !successor->over()) ended_ms_ = now_ms;
  if (now_ms - ended_ms_ <= kGpuSettle_ms) return false;
  if (alone_ || !successor || !successor->may_use_device_) return true;
  alone_ = true;
  ended_ms_ = now_ms;
  successor->stop(now_ms);
  return false;
}

std::vector<Attempt> BatchRun::not_done() const {
  std::vector<Attempt> left;
  for (std::size_t i = 0; i < finished_.size(); ++i)
    if (!finished_[i]) left.push_back(request_.attempts[i]);
  return left;
}

}  // namespace graphproof::launcher

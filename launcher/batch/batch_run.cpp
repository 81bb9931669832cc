#include "launcher/batch/batch_run.h"

#include <algorithm>
#include <system_error>
#include <utility>

#include "reports/record/text/message.h"

namespace graphproof::launcher {
namespace {

// Ending reads the environment of every process of the host.
constexpr std::int64_t kEnding_ms = 25;

std::vector<HangDetector::Case> detector_cases(const BatchRequest& request) {
  std::vector<HangDetector::Case> cases;
  for (std::size_t i = 0; i < request.batch.cases.size(); ++i)
    cases.push_back(
        {request.batch.cases[i].id, request.batch.cases[i].attempt, request.limits_ms.at(i)});
  return cases;
}

/// Where a planted hang hangs is known, so no time is spent on a debugger.
bool worth_a_debugger(const record::Expect& expect) {
  const bool expected = expect.kind == "hazard" && expect.verdict.starts_with("fail.hang");
  return expect.kind != "fault" && !expected;
}

}  // namespace

BatchRun::BatchRun(BatchRequest request, std::int64_t now_ms)
    : request_(std::move(request)),
      batch_folder_(request_.run_folder / "batches" / request_.batch.batch),
      detector_(request_.batch.world_size, detector_cases(request_), now_ms),
      prestart_(request_.prestarted),
      gpu_memory_(request_.refused ? nullptr : request_.nvml, request_.job.gpus,
                  request_.clean_gpus),
      gpu_trouble_(request_.gpu_health, request_.job.gpus, batch_folder_ / "driver.log"),
      infra_(request_.refused),
      finished_(request_.batch.cases.size()),
      started_ms_(now_ms) {
  if (infra_) return;
  try {
    ranks_ = std::make_unique<StartedRanks>(request_, batch_folder_);
    between_cases_.emplace(ranks_->leftovers());
    gpu_trouble_.start();
  } catch (const std::system_error& error) {
    infra_ = record::Infra{"launch", error.what()};
  } catch (const record::WriteError& error) {
    infra_ = record::Infra{"disk", error.what()};
  }
  if (infra_ && prestart_.waits()) prestart_.fail();
}

std::shared_ptr<BatchRun> BatchRun::prestart(BatchRequest next, std::int64_t now_ms) {
  next.prestarted = true;
  next.clean_gpus = gpu_memory_.before();
  auto successor = std::make_shared<BatchRun>(std::move(next), now_ms);
  successor_ = successor;
  return successor;
}

std::vector<record::Context> BatchRun::step(std::int64_t now_ms) {
  std::vector<record::Context> finished = advance(now_ms);
  if (!prestart_.waits()) gpu_trouble_.step(now_ms, finished);
  if (const auto successor = successor_.lock(); successor && successor_may_use_device())
    successor->allow_device();
  return finished;
}

std::vector<record::Context> BatchRun::advance(std::int64_t now_ms) {
  std::vector<record::Context> finished;
  if (stage_ == Stage::over) return finished;
  if (!ranks_) {
    // Prestarted ranks that could not be started decide no case: the cases start again, cold.
    return prestart_.failed() ? finished : conclude(now_ms);
  }
  // Before anything is decided: a line that has arrived counts, however late this round is.
  ranks_->read_heartbeats(detector_, now_ms);
  ranks_->look_at_processes(detector_, now_ms);
  if (prestart_.waits() && stage_ == Stage::running) {
    wait_for_begin(now_ms);
    return finished;
  }
  if (stage_ == Stage::running) {
    hand_out(between_cases_->step(ended_cases(), detector_.living_pids(), now_ms), now_ms,
             finished);
    decide(now_ms);
  }
  if (stage_ == Stage::inspecting && inspection_->step(now_ms)) end(false, now_ms);
  if (stage_ == Stage::ending && now_ms - end_->stepped_ms >= kEnding_ms) {
    end_->stepped_ms = now_ms;
    if (!end_->ending.step(now_ms)) return finished;
    stage_ = Stage::freeing_gpus;
    ranks_->starter_exit();
    gpu_memory_wait_.start(now_ms);
  }
  if (stage_ == Stage::freeing_gpus) free_gpus(now_ms);
  if (stage_ == Stage::over)
    for (record::Context& context : conclude(now_ms)) finished.push_back(std::move(context));
  return finished;
}

void BatchRun::wait_for_begin(std::int64_t now_ms) {
  const PrestartWait::Ranks ranks{.ended = ranks_->starter_exit() || detector_.first_dead(),
                                  .ready = detector_.all_ready()};
  switch (prestart_.step(ranks, request_.batch.limits_ms.at(record::Phase::init), now_ms)) {
    case PrestartWait::Step::none:
      break;
    case PrestartWait::Step::allow_device:
      ranks_->allow_device();
      break;
    case PrestartWait::Step::begin:
      gpu_trouble_.start();
      started_ms_ = now_ms;
      detector_.restart(now_ms);
      ranks_->begin();
      break;
  }
}

void BatchRun::decide(std::int64_t now_ms) {
  if (ranks_->starter_exit()) return end(true, now_ms);
  // The others wait for a dead rank until mpirun ends them. That is its death and not their hang.
  if (const auto dead = detector_.first_dead()) {
    if (now_ms - detector_.process(*dead).gone_ms > kStarterLinger_ms) end(false, now_ms);
    return;
  }
  if (detector_.all_gone() && now_ms - detector_.last_gone_ms() > kStarterLinger_ms)
    return end(false, now_ms);
  // The ranks may have begun the next case when they were asked, and no further one.
  if (asked_in_ && detector_.current() > *asked_in_ + 1 && detector_.current() < finished_.size() &&
      detector_.begun(detector_.current()))
    return stop(now_ms);
  if (const auto hang = detector_.overdue(now_ms)) inspect(*hang, now_ms);
}

void BatchRun::inspect(const HangDecision& hang, std::int64_t now_ms) {
  const HangInspection::Places places{
      .evidence_folder = request_.batch.cases[hang.case_index].evidence_folder,
      .node_folder = ranks_->node_folder(),
      .batch_folder = batch_folder_,
      .ras_address = ranks_->ras_address()};
  inspection_.emplace(hang, detector_, places,
                      worth_a_debugger(request_.attempts[hang.case_index].line.expect), now_ms);
  stage_ = Stage::inspecting;
}

void BatchRun::end(bool by_itself, std::int64_t now_ms) {
  end_.emplace(End{Ending(*request_.processes, ranks_->starter_pid(), request_.batch.mark,
                          by_itself, now_ms, ranks_->leftovers().looks_before()),
                   by_itself});
  if (by_itself) {
    std::vector<int> left;
    for (const Process& process : end_->ending.left()) left.push_back(process.pid);
    ranks_->leftovers().look_at_ports(left);
  }
  stage_ = Stage::ending;
}

void BatchRun::free_gpus(std::int64_t now_ms) {
  const auto successor = successor_.lock();
  std::optional<GpuMemoryWait::Successor> shown;
  if (successor)
    shown = {.uses_device = successor->prestart_.device_allowed(), .over = successor->over()};
  switch (gpu_memory_wait_.step(gpu_memory_.is_back(successor_pids()), shown, now_ms)) {
    case GpuMemoryWait::Step::wait:
      break;
    case GpuMemoryWait::Step::settled:
      stage_ = Stage::over;
      break;
    case GpuMemoryWait::Step::end_successor:
      successor->stop(now_ms);
      break;
  }
}

void BatchRun::stop(std::int64_t now_ms) {
  if (prestart_.waits() && !ranks_) stage_ = Stage::over;
  if (stage_ != Stage::running || !ranks_) return;
  stopped_ = true;
  end(false, now_ms);
}

void BatchRun::stop_after_case() {
  if (!ranks_ || asked_in_) return;
  asked_in_ = detector_.current();
  ranks_->stop_after_case();
}

std::vector<Attempt> BatchRun::not_done() const {
  std::vector<Attempt> left;
  for (std::size_t i = 0; i < finished_.size(); ++i)
    if (!finished_[i]) left.push_back(request_.attempts[i]);
  return left;
}

std::vector<std::string> BatchRun::unkillable() const {
  return end_ ? named(end_->ending.unkillable()) : std::vector<std::string>();
}

std::vector<int> BatchRun::successor_pids() const {
  const auto successor = successor_.lock();
  return successor ? successor->detector_.living_pids() : std::vector<int>();
}

bool BatchRun::successor_may_use_device() const {
  if (request_.batch.device != "cuda") return true;
  // Nearly every case measures the used memory of a GPU until its end, and what stays in use
  // afterwards must be distinguished.
  const bool measures_nothing = stage_ != Stage::over && detector_.measured(finished_.size() - 1);
  return measures_nothing && !gpu_memory_wait_.successor_ended() &&
         gpu_memory_.lists(detector_.living_pids());
}

}  // namespace graphproof::launcher

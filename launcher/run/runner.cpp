#include "launcher/run/runner.h"

#include <sys/prctl.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <set>
#include <system_error>
#include <utility>

#include "launcher/batch/attempt_folder.h"
#include "launcher/batch/batch_run.h"
#include "launcher/doctor/doctor.h"
#include "launcher/host/clocks.h"
#include "launcher/run/run_folder.h"
#include "reports/analysis/divergence.h"
#include "reports/record/text/file.h"
#include "reports/record/text/message.h"

namespace graphproof::launcher {
namespace {

namespace fs = std::filesystem;

// Heartbeats are read and children looked at this often; a child's end wakes the loop at once.
constexpr std::chrono::milliseconds kRound{10};

std::string today() { return utc_text(std::time(nullptr)).substr(0, 10); }

/// Nodes that a cluster lends are alike and each an island. Of this host the driver knows which
/// GPUs are joined by NVLink.
Schedule schedule_of(const RunSetup& setup, const Nvml* gpus) {
  if (setup.allocation)
    return Schedule(setup.allocation->nodes() * setup.run.slots, setup.run.slots);
  std::vector<Place> places(static_cast<std::size_t>(setup.run.slots));
  if (gpus != nullptr && !setup.gpus.empty()) {
    places.clear();
    for (const int island : gpus->islands(setup.gpus)) places.push_back({island, 0});
  }
  const int cases_per_gpu = setup.run.options.sharing.cases_per_gpu;
  if (cases_per_gpu > 1) return Schedule::of_shared_gpus(places, cases_per_gpu);
  return Schedule(std::move(places));
}

BatchHostSetup host_setup(const RunSetup& setup) {
  return {.run_folder = setup.folder,
          .rank_program = setup.rank_program,
          .gpus = setup.run.device == "cuda" && !setup.allocation ? setup.gpus
                                                                  : std::vector<std::string>(),
          .processes = setup.processes};
}

/// Which processes are on the GPU of a slot, for a notice; "" where the driver is not asked.
std::string users_of(const BatchHost& host, Slot slot) {
  if (host.nvml() == nullptr) return "";
  return " (processes on it now: " + host.nvml()->users(host.gpu(slot)) + ")";
}

/// The batch, if its ranks are on this host.
BatchRun* on_this_host(RunningBatch& batch) { return dynamic_cast<BatchRun*>(&batch); }

/// What the doctor finds on this host, and whether these GPUs still sum together. Waits for that, a
/// minute at most.
std::vector<Finding> examine_host(const RunSetup& setup, const std::vector<std::string>& gpus) {
  return examine(
      look_before_cases(setup.folder, setup.run.device, setup.run.slots, gpus, setup.rank_program));
}

}  // namespace

Runner::Runner(const RunSetup& setup, const RunListener& listener,
               const std::vector<record::Record>& earlier, double earlier_seconds)
    : setup_(setup),
      listener_(listener),
      status_(setup, listener, earlier_seconds),
      host_(setup.run, host_setup(setup)),
      queue_(schedule_of(setup, host_.nvml()), setup.effects,
             setup.run.options.sharing.ranks_per_gpu),
      judges_(setup.judge_program),
      recorder_(setup, earlier),
      warm_starts_(setup.prestart && !host_.exclusive_process()),
      quarantine_(queue_.schedule(), [this](Slot slot) { return users_of(host_, slot); }),
      spending_(setup.run.options, status_.started_ms()),
      disk_floor_(setup.folder, setup.disk_floor_bytes) {
  for (const record::Record& record : earlier) {
    histories_[record.case_id].infra_attempts += record.verdict.in("infra");
    spending_.add_earlier(record);
  }
}

double Runner::wall_seconds() const { return status_.wall_seconds(steady_ms()); }

reports::Ending Runner::run(PendingWork pending) {
  // Orphans of a batch come to this process instead of to init, so that they can be waited for.
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  if (setup_.allocation)
    setup_.allocation->listen([this](const std::string& message) { log(message); });
  try {
    take(std::move(pending));
    if (!setup_.allocation && !queue_.empty())
      for (const std::string& text : notable(examine_host(setup_, setup_.gpus)))
        log("doctor: " + text);
    while (!queue_.schedule().idle() || !running_.empty() || !warm_starts_.idle() ||
           !judges_.idle()) {
      round(steady_ms());
      signals_.wait_for(kRound);
    }
  } catch (const record::WriteError& error) {
    disk_full(error.what());
  } catch (...) {
    end_all_processes();
    throw;
  }
  if (setup_.allocation) setup_.allocation->release();
  reap_orphans({});
  status_.remove();
  return ending_.value_or(reports::Ending::finished);
}

void Runner::take(PendingWork pending) {
  queue_.number_after(pending.batch_count);
  std::set<std::string> open;
  for (const Attempt& attempt : pending.attempts) open.insert(attempt.line.id);
  for (const Diagnosis& diagnosis : pending.diagnoses) open.insert(diagnosis.attempt.line.id);
  for (const Unjudged& unjudged : pending.unjudged) open.insert(unjudged.line.id);
  recorder_.begin(open);
  for (const record::Record& first : pending.firsts)
    histories_[first.case_id].failed_in_batch = outcome_of(first);
  for (Unjudged& unjudged : pending.unjudged) case_ended(std::move(unjudged.context));
  for (Diagnosis& diagnosis : pending.diagnoses) {
    histories_[diagnosis.first.case_id].failed_in_batch = outcome_of(diagnosis.first);
    add({.attempts = {std::move(diagnosis.attempt)}});
  }
  for (CaseGroup& group :
       group_cases(pending.attempts, setup_.run.device, queue_.schedule().slot_count()))
    add(std::move(group));
}

void Runner::round(std::int64_t now_ms) {
  check_bounds(now_ms);
  if (setup_.allocation) setup_.allocation->step(now_ms);
  step_batches(now_ms);
  step_warm_starts(now_ms);
  for (const JudgePool::Judged& judged : judges_.step(now_ms)) case_judged(judged, now_ms);
  start_batches(now_ms);
  status_.show(now_ms, recorder_.progress(), running_, ending_);
}

void Runner::check_bounds(std::int64_t now_ms) {
  switch (interrupts_.next(signals_.interrupts())) {
    case InterruptAction::none:
      break;
    case InterruptAction::finish_running:
      end_run(
          {reports::Ending::interrupted,
           "interrupted: running cases end, no others start; interrupt again to end them at once"});
      break;
    case InterruptAction::end_running:
      end_run({reports::Ending::interrupted, "interrupted again: ending all processes"});
      for (const auto& batch : running_) batch->stop(now_ms);
      break;
  }
  disk_floor_.check(now_ms);
  if (ending_) return;
  // While each batch is at its last case and none waits, there is nothing to cut short.
  if (const auto end = spending_.reached(now_ms); end && cases_wait()) end_run(*end);
}

bool Runner::cases_wait() const {
  return !queue_.empty() || std::any_of(running_.begin(), running_.end(), [](const auto& batch) {
    return batch->not_done().size() > 1;
  });
}

void Runner::add(CaseGroup group, const std::vector<Slot>& avoided) {
  queue_.add(std::move(group), avoided, warm_starts_.enabled());
}

void Runner::start_batches(std::int64_t now_ms) {
  for (const std::string& batch : queue_.schedule().drop_unfit()) refuse(batch);
  if (setup_.allocation && !setup_.allocation->ready()) return;
  for (const Start& one : queue_.schedule().start(now_ms)) start(one, now_ms);
  if (ending_ || !warm_starts_.enabled() ||
      (setup_.allocation && !setup_.allocation->can_prestart()))
    return;
  for (const Start& one : queue_.schedule().prestart()) prestart(one, now_ms);
}

void Runner::start(const Start& start, std::int64_t now_ms) {
  const CaseGroup group = queue_.take(start.batch);
  searches_.started(start.batch, now_ms);
  spending_.started(start.batch, group.ranks(), now_ms);
  if (auto ready = warm_starts_.take(start.batch)) {
    ready->begin();
    running_.push_back(std::move(ready));
    return;
  }
  BatchRequest request = host_.request(group, start.batch, start.slots, queue_.exclusive(group));
  if (setup_.allocation)
    running_.push_back(setup_.allocation->start(std::move(request), start.slots, now_ms));
  else
    running_.push_back(std::make_shared<BatchRun>(std::move(request), now_ms));
}

void Runner::prestart(const Start& start, std::int64_t now_ms) {
  RunningBatch& predecessor =
      **std::find_if(running_.begin(), running_.end(), [&](const auto& one) {
        return queue_.schedule().slots_of(one->batch().batch) == start.slots;
      });
  BatchRequest request = host_.request(queue_.group(start.batch), start.batch, start.slots);
  request.prestarted = true;
  request.predecessor = predecessor.batch().batch;
  if (setup_.allocation)
    warm_starts_.add(start.batch,
                     setup_.allocation->start(std::move(request), start.slots, now_ms));
  else
    warm_starts_.add(start.batch, on_this_host(predecessor)->prestart(std::move(request), now_ms));
}

void Runner::refuse(const std::string& batch) {
  const CaseGroup group = queue_.take(batch);
  if (searches_.remove(batch)) return;
  const BatchRequest request = host_.request(group, batch, {});
  for (std::size_t i = 0; i < group.attempts.size(); ++i) {
    record::Context context = context_of(request, i);
    context.infra = record::Infra{setup_.run.device == "cuda" ? "gpu" : "node",
                                  "needs " + std::to_string(queue_.slots_of(group)) +
                                      " slots, and too few are left: " + quarantine_.reasons()};
    case_ended(std::move(context));
  }
}

void Runner::step_batches(std::int64_t now_ms) {
  for (auto next = running_.begin(); next != running_.end();) {
    RunningBatch& batch = **next;
    step(batch, now_ms);
    if (!batch.over() && !batch.prestart_failed()) {
      ++next;
      continue;
    }
    release(batch, now_ms);
    std::shared_ptr<RunningBatch> released = std::move(*next);
    next = running_.erase(next);
    if (released->prestart_failed()) {
      warm_starts_.give_up(std::move(released), now_ms);
      continue;
    }
    released.reset();
    if (!judges_.idle()) continue;
    std::vector<int> known = warm_starts_.starter_pids();
    if (setup_.allocation) {
      const std::vector<int> own = setup_.allocation->children();
      known.insert(known.end(), own.begin(), own.end());
    }
    for (const auto& other : running_) known.push_back(other->starter_pid());
    reap_orphans(known);
  }
}

void Runner::step(RunningBatch& batch, std::int64_t now_ms) {
  const std::string& name = batch.batch().batch;
  const bool search = searches_.contains(name);
  if (searches_.overdue(name, now_ms)) batch.stop(now_ms);
  for (record::Context& context : batch.step(now_ms)) {
    const GpuQuarantine::Observation observation = quarantine_.observe(context);
    for (const std::string& notice : observation.notices) log(notice);
    if (observation.end_batch) batch.stop(now_ms);
    if (!search) case_ended(std::move(context));
  }
}

void Runner::release(RunningBatch& batch, std::int64_t now_ms) {
  const std::string name = batch.batch().batch;
  if (batch.prestart_failed()) {
    // Its folders are in use until its processes are gone, so its cases start under another name;
    // and cold, as all do from now on: what goes wrong there is not to be tried for ever.
    log("the ranks of batch " + name +
        " ended before their turn: no more ranks are started before their turn");
    warm_starts_.disable();
    spending_.forget(name);
  } else {
    spending_.ended(name, now_ms);
    if (const auto unkillable = batch.unkillable(); !unkillable.empty())
      log(quarantine_.withdraw_from(name, unkillable));
    // No other batch has its GPUs yet.
    if (const BatchRun* here = on_this_host(batch); here && quarantine_.take_trouble(name)) {
      std::vector<Finding> findings = examine_host(setup_, here->gpus());
      // The run's own processes are no leftovers.
      std::erase_if(findings, [](const Finding& one) { return one.check == "leftover_processes"; });
      for (const std::string& text : notable(findings)) log("doctor: " + text);
    }
  }
  queue_.schedule().release(name);
  if (const auto searched = searches_.remove(name)) {
    log(searched->name + ": first divergent tensor: " +
        reports::divergence_text(setup_.folder / searched->artefacts, searched->ranks));
  } else if (std::vector<Attempt> left = batch.not_done(); !left.empty() && !ending_) {
    add({.attempts = std::move(left)}, quarantine_.avoided(name));
  }
}

void Runner::step_warm_starts(std::int64_t now_ms) {
  const auto has_place = [&](const std::string& name) {
    return queue_.schedule().prestarted(name);
  };
  for (const auto& [name, batch] : warm_starts_.step(now_ms, has_place)) {
    queue_.drop(name);
    if (!searches_.remove(name)) add({.attempts = batch->not_done()});
  }
}

void Runner::case_ended(record::Context context) {
  const fs::path folder = setup_.folder / attempt_folder(context.case_id, context.attempt);
  std::error_code exists;
  fs::create_directories(folder, exists);
  record::write_json(folder / "context.json", record::to_json(context), record::Survives::kill);
  judging_.emplace(folder, std::move(context));
  judges_.add(folder);
}

void Runner::case_judged(const JudgePool::Judged& judged, std::int64_t now_ms) {
  // It stays in judging_ until it is recorded: see disk_full().
  const auto place = judging_.find(judged.attempt_folder);
  const record::Context& context = place->second;
  const record::PlanLine& line = recorder_.line(context.case_id);
  if (!judged.trouble.empty()) log(line.name + ": " + judged.trouble);
  const reports::OutcomeInput input{line, context, judged.checks, {}, today()};
  const JudgedAttempt attempt{line, context, reports::outcome(input, setup_.effects)};
  // A full disk may be what the case failed of. Then it has no verdict: this throws.
  if (reports::exit_code(attempt.outcome.verdict, attempt.outcome.rule) ==
      record::ExitCode::product)
    disk_floor_.check_now(now_ms);

  const CaseDecision decision = decide(attempt, std::move(histories_[line.id]),
                                       policy_options(setup_.run), standing(line, context));
  const record::Record record = reports::make_record(
      input, decision.outcome, setup_.run.run_id, attempt_folder(context.case_id, context.attempt));
  if (decision.end_batch)
    for (const auto& batch : running_)
      if (batch->batch().batch == context.batch) end_batch(*batch, now_ms);
  recorder_.keep(record, decision.verdict_stands());
  if (decision.verdict_stands()) {
    histories_.erase(line.id);
    standing_.count(decision.outcome);
    if (decision.run_end) end_run(*decision.run_end);
    if (listener_.finished)
      listener_.finished(record, status_.progress(steady_ms(), recorder_.progress(), running_));
  } else {
    histories_[line.id] = decision.history;
    run_again(attempt, decision);
  }
  if (decision.search_divergence) {
    ++standing_.divergence_searches;
    Attempt again{line, context.attempt, ""};
    again.line.isolation = "process";
    const std::string batch = queue_.add({.attempts = {std::move(again)}, .divergence = true}, {},
                                         warm_starts_.enabled());
    searches_.add(batch, record);
  }
  judging_.erase(place);
}

void Runner::end_batch(RunningBatch& batch, std::int64_t now_ms) {
  // Its ranks have begun the next case by now. Under CUDA's Multi-Process Service, killing a
  // process while its kernels run may end all others on the same GPU.
  if (setup_.run.options.sharing.cases_per_gpu > 1) return batch.stop_after_case();
  batch.stop(now_ms);
}

RunStanding Runner::standing(const record::PlanLine& line, const record::Context& context) const {
  RunStanding standing = standing_;
  standing.ending = ending_ || spending_.reached(steady_ms());
  standing.last_case = recorder_.is_last(line.id);
  const std::vector<Slot> avoided = quarantine_.avoided(context.batch);
  standing.fits_elsewhere =
      setup_.allocation ||
      (!avoided.empty() && queue_.schedule().fits_elsewhere(line.ranks, avoided));
  return standing;
}

void Runner::run_again(const JudgedAttempt& attempt, const CaseDecision& decision) {
  // The final record may be hours away, and whoever watches the run wants to know of the failure.
  log(attempt.line.name + ": " + decision.again + ": " + attempt.outcome.reason +
      "; the case runs again");
  Attempt next{attempt.line, attempt.context.attempt + 1, decision.again};
  if (decision.next == NextAttempt::elsewhere) {
    add({.attempts = {std::move(next)}}, quarantine_.avoided(attempt.context.batch));
    return;
  }
  next.line.isolation = "process";
  add({.attempts = {std::move(next)}});
}

void Runner::end_run(const RunEnd& end) {
  log(end.notice);
  if (!ending_) ending_ = end.ending;
  for (const std::string& batch : queue_.drop_all()) searches_.remove(batch);
  warm_starts_.give_up_all(steady_ms());
  for (const auto& batch : running_) batch->stop_after_case();
}

void Runner::disk_full(const std::string& why) {
  log(why);
  ending_ = reports::Ending::disk;
  end_run({reports::Ending::disk,
           "the run stops (infra.disk): what is recorded stands, the rest can be resumed"});
  end_all_processes();
  // Their evidence may be cut short by the full disk. Without a context they are run again, and not
  // judged.
  std::error_code ignored;
  for (const auto& [folder, context] : judging_) fs::remove(folder / "context.json", ignored);
}

void Runner::end_all_processes() {
  if (setup_.allocation) {
    // Agents end what they started when their nodes are given back, also where nothing can be
    // written to them any more.
    setup_.allocation->release();
    running_.clear();
    warm_starts_.clear();
    return;
  }
  running_.splice(running_.end(), warm_starts_.end_all(steady_ms()));
  for (const auto& batch : running_) batch->stop(steady_ms());
  for (const auto& batch : running_)
    while (!batch->over()) {
      batch->step(steady_ms());
      signals_.wait_for(kRound);
    }
  running_.clear();
}

void Runner::log(const std::string& message) const {
  if (listener_.notice) listener_.notice(message);
}

}  // namespace graphproof::launcher

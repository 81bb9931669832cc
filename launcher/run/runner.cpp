#include "launcher/run/runner.h"

#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <system_error>
#include <utility>

#include "launcher/batch/batch_request.h"
#include "launcher/doctor/doctor.h"
#include "launcher/run/run_folder.h"
#include "matrix/input/input_error.h"
#include "reports/analysis/divergence.h"
#include "reports/record/text/file.h"
#include "reports/record/text/message.h"

namespace graphproof::launcher {
namespace {

namespace fs = std::filesystem;

// Heartbeats are read and children looked at this often; a child's end wakes the loop at once.
constexpr std::chrono::milliseconds kRound{10};
constexpr std::int64_t kProgress_ms = 200;
// What others see of a run may be this old.
constexpr std::int64_t kLive_ms = 1000;
constexpr std::int64_t kDisk_ms = 1000;
// junit.xml is written again at most this often: with thousands of cases it is not small.
constexpr std::int64_t kJunit_ms = 2000;
// It is written whole, and grows with the run: at most a hundredth of the time goes there.
constexpr std::int64_t kJunitShare = 100;
// Failures after these few have most likely the same cause, and each costs a start of the ranks.
constexpr int kMostDivergences = 8;
// Beside the limits of its phases: the verdict is there already, and nobody waits longer for its
// explanation.
constexpr std::int64_t kDivergence_ms = 180'000;

std::int64_t steady_ms() {
  using namespace std::chrono;
  return duration_cast<milliseconds>(steady_clock::now().time_since_epoch()).count();
}

std::int64_t utc_ms() {
  using namespace std::chrono;
  return duration_cast<milliseconds>(system_clock::now().time_since_epoch()).count();
}

std::string today() { return utc_text(std::time(nullptr)).substr(0, 10); }

std::string host_name() {
  char name[256] = "";
  gethostname(name, sizeof name - 1);
  return name;
}

/// The outcome that a record was made of.
reports::Outcome outcome_of(const record::Record& record) {
  return {.verdict = record.verdict,
          .observed = record.observed,
          .rule = record.rule,
          .reason = record.reason,
          .failing = record.failing,
          .counts = record.checks,
          .phase = record.phase};
}

/// Nodes that a cluster lends are alike and each an island; of this host the driver knows which
/// GPUs are joined.
Schedule schedule_of(const RunSetup& setup, const Nvml* gpus) {
  if (setup.allocation)
    return Schedule(setup.allocation->nodes() * setup.run.slots, setup.run.slots);
  if (gpus == nullptr || setup.gpus.empty()) return Schedule(setup.run.slots);
  std::vector<Place> places;
  for (const int island : gpus->islands(setup.gpus)) places.push_back({island, 0});
  return Schedule(std::move(places));
}

/// Its figures would be another's doing: a check that fails as fail.perf is required of it.
bool measures_time(const record::PlanLine& line, const reports::CheckEffects& effects) {
  return std::any_of(line.required_checks.begin(), line.required_checks.end(),
                     [&](const std::string& check) {
                       const auto effect = effects.find(check);
                       return effect != effects.end() && effect->second.verdict == "fail.perf";
                     });
}

/// What a rank's process has from its start on.
std::string environment_key(const record::PlanLine& line) {
  std::string key = std::to_string(line.ranks);
  for (const auto& [name, value] : line.environment) key += "\n" + name + "=" + value;
  return key;
}

BatchRun* of_this_host(const std::shared_ptr<RunningBatch>& batch) {
  return dynamic_cast<BatchRun*>(batch.get());
}

bool is_product_failure(const record::Record& record) {
  return reports::exit_code(record.verdict, record.rule) == record::ExitCode::product;
}

}  // namespace

Runner::Runner(const RunSetup& setup, const RunListener& listener,
               const std::vector<record::Record>& earlier, double earlier_seconds)
    : setup_(setup),
      listener_(listener),
      processes_(setup.processes ? *setup.processes : host_processes_),
      earlier_seconds_(earlier_seconds),
      started_ms_(steady_ms()),
      prestart_(setup.prestart),
      nvml_(setup.run.device == "cuda" ? Nvml::open() : nullptr),
      schedule_(schedule_of(setup, nvml_.get())),
      junit_(setup.run.profile, setup.run_name, setup.plan),
      judges_(setup.judge_program),
      journal_(setup.folder / "journal.jsonl") {
  for (const record::PlanLine& line : setup.plan) {
    line_of_.emplace(line.id, &line);
    skipped_ += line.skip.has_value();
  }
  for (const record::Record& record : earlier) {
    junit_.add(record);
    infra_count_[record.case_id] += record.verdict.in("infra");
    leased_ms_ += static_cast<std::int64_t>(record.seconds * 1000) * record.ranks;
  }
  for (const std::string& gpu : setup.gpus)
    exclusive_process_ = exclusive_process_ || (nvml_ && nvml_->exclusive_process(gpu));
  if (nvml_ && !setup.allocation) cpus_ = cpus_of(*nvml_, setup.gpus);
  if (nvml_ && !setup.allocation) gpu_health_ = std::make_unique<GpuHealth>(*nvml_, setup.gpus);
  junit_.write(setup.folder / "junit.xml");
}

double Runner::wall_seconds() const {
  return earlier_seconds_ + static_cast<double>(steady_ms() - started_ms_) / 1000.0;
}

reports::Ending Runner::run(PendingWork pending) {
  // Orphans of a batch come to us instead of to init, so that they can be waited for.
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  folders_ = std::make_unique<HostFolders>(setup_.run.run_id);
  if (setup_.allocation) setup_.allocation->listen([this](const std::string& text) { say(text); });
  try {
    take(std::move(pending));
    look_at_this_host();
    while (!schedule_.idle() || !running_.empty() || !given_up_.empty() || !judges_.idle()) {
      round(steady_ms());
      signals_.wait_for(kRound);
    }
  } catch (const record::WriteError& error) {
    disk_full(error.what());
  } catch (...) {
    end_all();
    throw;
  }
  if (setup_.allocation) setup_.allocation->release();
  reap_orphans({});
  std::error_code ignored;
  fs::remove(setup_.folder / "live.json", ignored);
  return stopped_.value_or(reports::Ending::finished);
}

void Runner::take(PendingWork pending) {
  batch_count_ = pending.batch_count;
  for (const auto& [id, line] : line_of_)
    if (!line->skip) expected_left_ += line->expected_seconds;
  const auto drop_expected = [this](const std::string& id) {
    expected_done_ += line_of_.at(id)->expected_seconds;
    expected_left_ -= line_of_.at(id)->expected_seconds;
  };
  std::map<std::string, bool> open;
  for (const Attempt& attempt : pending.attempts) open[attempt.line.id] = true;
  for (const Diagnosis& diagnosis : pending.diagnoses) open[diagnosis.attempt.line.id] = true;
  for (const Unjudged& unjudged : pending.unjudged) open[unjudged.line.id] = true;
  for (auto& [id, record] :
       record::last_records(record::read_journal(setup_.folder / "journal.jsonl").records)) {
    if (open.contains(id) || !line_of_.contains(id)) continue;
    failed_ += is_product_failure(record);
    final_.emplace(id, record);
    drop_expected(id);
  }
  for (const record::Record& first : pending.firsts)
    first_outcome_.emplace(first.case_id, outcome_of(first));
  for (Unjudged& unjudged : pending.unjudged) case_ended(std::move(unjudged.context));
  for (Diagnosis& diagnosis : pending.diagnoses)
    add_alone(diagnosis.first, std::move(diagnosis.attempt));
  for (CaseGroup& group : group_cases(pending.attempts, setup_.run.device, schedule_.slot_count()))
    add(std::move(group));
}

void Runner::end_all() {
  if (setup_.allocation) {
    // Agents end what they started when their nodes are given back; also where nothing can be
    // written to them any more.
    setup_.allocation->release();
    running_.clear();
    prestarted_.clear();
    given_up_.clear();
    return;
  }
  give_up_prestarted(steady_ms());
  running_.splice(running_.end(), given_up_);
  for (const auto& batch : running_) batch->stop(steady_ms());
  for (const auto& batch : running_)
    while (!batch->over()) {
      batch->step(steady_ms());
      signals_.wait_for(kRound);
    }
  running_.clear();
}

void Runner::round(std::int64_t now_ms) {
  check_interrupts(now_ms);
  check_disk(now_ms);
  if (const std::int64_t budget_ms = setup_.run.options.budget_ms;
      budget_ms > 0 && !stopped_ && now_ms - started_ms_ > budget_ms) {
    say("the time budget is over: running cases end, no others start; graphproof resume goes on");
    stop_starting(reports::Ending::budget);
  }
  if (setup_.allocation) setup_.allocation->step(now_ms);
  check_price(now_ms);
  step_batches(now_ms);
  step_prestarted(now_ms);
  for (const JudgePool::Judged& judged : judges_.step(now_ms)) case_judged(judged, now_ms);
  start_batches(now_ms);
  show(now_ms);
}

void Runner::show(std::int64_t now_ms) {
  if (now_ms - live_ms_ >= kLive_ms) {
    live_ms_ = now_ms;
    record::write_json(setup_.folder / "live.json", record::to_json(live(now_ms)));
  }
  if (now_ms - progress_ms_ >= kProgress_ms && listener_.progress) {
    progress_ms_ = now_ms;
    listener_.progress(progress(now_ms));
  }
}

void Runner::check_interrupts(std::int64_t now_ms) {
  const int interrupts = signals_.interrupts();
  if (interrupts == handled_interrupts_) return;
  handled_interrupts_ = interrupts;
  if (interrupts == 1) {
    say("interrupted: running cases end, no others start; once more ends them at once");
    stop_starting(reports::Ending::interrupted);
  } else {
    say("interrupted again: ending all processes");
    for (const auto& batch : running_) batch->stop(now_ms);
  }
}

void Runner::check_price(std::int64_t now_ms) {
  const std::int64_t most_ms = setup_.run.options.max_gpu_ms;
  if (most_ms == 0 || stopped_) return;
  std::int64_t leased_ms = leased_ms_;
  for (const auto& batch : running_)
    leased_ms += batch->batch().world_size * (now_ms - started_at_ms_.at(batch->batch().batch));
  if (leased_ms < most_ms) return;
  say("--max-gpu-minutes is reached: running cases end, no others start; graphproof resume goes "
      "on");
  stop_starting(reports::Ending::budget);
}

bool Runner::disk_is_low() const {
  std::error_code unknown;
  const fs::space_info space = fs::space(setup_.folder, unknown);
  return !unknown && static_cast<std::int64_t>(space.available) < setup_.disk_floor_bytes;
}

void Runner::check_disk(std::int64_t now_ms) {
  if (now_ms - disk_ms_ < kDisk_ms) return;
  disk_ms_ = now_ms;
  if (!disk_is_low()) return;
  throw record::WriteError(
      {.what = "the run folder " + setup_.folder.string() + " is nearly full",
       .got = "less than " + std::to_string(setup_.disk_floor_bytes >> 20) + " MiB free",
       .want = "room for evidence and logs",
       .why = "a case that meets a full disk fails for a reason that is not its own",
       .next = "free space, then graphproof resume " + setup_.folder.string()});
}

void Runner::disk_full(const std::string& why) {
  say(why);
  say("the run stops (infra.disk): what is recorded stands, the rest can be resumed");
  stopped_ = reports::Ending::disk;
  stop_starting(*stopped_);
  end_all();
  // Their evidence may be cut short by the full disk: without a context they are run again, and not
  // judged.
  std::error_code ignored;
  for (const auto& [folder, ended] : judging_) fs::remove(folder / "context.json", ignored);
}

void Runner::stop_starting(reports::Ending ending) {
  if (!stopped_) stopped_ = ending;
  for (const std::string& name : schedule_.drop_waiting()) {
    waiting_.erase(name);
    divergences_.erase(name);
  }
  give_up_prestarted(steady_ms());
  for (const auto& batch : running_) batch->stop_after_case();
}

void Runner::add(CaseGroup group, const std::vector<Slot>& avoided) {
  char name[16];
  std::snprintf(name, sizeof name, "b%03d", ++batch_count_);
  Queued queued{.batch = name,
                .slots = slots_of(group),
                .expected_seconds = group.expected_seconds(),
                .avoided = avoided};
  for (const Attempt& attempt : group.attempts)
    queued.exclusive = queued.exclusive || measures_time(attempt.line, setup_.effects);
  // Refusals must come before device work, and planned hangs take their time to end: neither gains
  // anything.
  const std::string& expects = group.attempts.front().line.expect.kind;
  if (prestart_ && !exclusive_process_ && !queued.exclusive && expects != "rejected" &&
      expects != "hazard")
    queued.prestart_key = environment_key(group.attempts.front().line);
  schedule_.add(queued);
  waiting_.emplace(name, std::move(group));
}

int Runner::slots_of(const CaseGroup& group) const {
  // More ranks than GPUs share them all, so that nobody else's work is on any.
  return setup_.run.options.ranks_per_gpu > 1 ? std::min(group.ranks(), setup_.run.slots)
                                              : group.ranks();
}

void Runner::add_alone(const record::Record& first, Attempt attempt) {
  first_outcome_.insert_or_assign(first.case_id, outcome_of(first));
  add({.attempts = {std::move(attempt)}});
}

void Runner::look_for_divergence(const record::Record& record, const record::PlanLine& line) {
  if (stopped_ || ++looked_for_divergence_ > kMostDivergences) return;
  Attempt again{line, record.attempt, ""};
  again.line.isolation = "process";
  char name[16];
  std::snprintf(name, sizeof name, "b%03d", batch_count_ + 1);
  divergences_.emplace(name, Divergence{.record = record});
  add({.attempts = {std::move(again)}, .divergence = true});
}

void Runner::divergence_ended(const std::string& batch) {
  const auto ended = divergences_.extract(batch);
  const record::Record& record = ended.mapped().record;
  say(record.name + ": first divergent tensor: " +
      reports::divergence_text(setup_.folder / record.artefacts, record.ranks));
}

void Runner::start_batches(std::int64_t now_ms) {
  for (const std::string& batch : schedule_.drop_unfit()) refuse(batch, now_ms);
  if (setup_.allocation && !setup_.allocation->ready()) return;
  for (const Start& one : schedule_.start(now_ms)) start(one, now_ms);
  if (!stopped_ && prestart_ && (!setup_.allocation || setup_.allocation->can_prestart()))
    prestart_batches(now_ms);
}

void Runner::start(const Start& start, std::int64_t now_ms) {
  const auto group = waiting_.extract(start.batch);
  auto ready = prestarted_.extract(start.batch);
  if (const auto divergence = divergences_.find(start.batch); divergence != divergences_.end())
    divergence->second.started_ms = now_ms;
  started_at_ms_[start.batch] = now_ms;
  if (ready) {
    ready.mapped()->begin();
    running_.push_back(std::move(ready.mapped()));
    return;
  }
  BatchRequest wanted = request(group.mapped(), start.batch, start.slots);
  if (setup_.allocation)
    running_.push_back(setup_.allocation->start(std::move(wanted), start.slots, now_ms));
  else
    running_.push_back(std::make_unique<BatchRun>(std::move(wanted), now_ms));
}

void Runner::prestart_batches(std::int64_t now_ms) {
  for (const Start& start : schedule_.prestart()) {
    const auto before = std::find_if(running_.begin(), running_.end(), [&](const auto& one) {
      return schedule_.slots_of(one->batch().batch) == start.slots;
    });
    BatchRequest next = request(waiting_.at(start.batch), start.batch, start.slots);
    next.prestarted = true;
    next.predecessor = (*before)->batch().batch;
    auto& place = prestarted_[start.batch];
    if (setup_.allocation)
      place = setup_.allocation->start(std::move(next), start.slots, now_ms);
    else
      place = of_this_host(*before)->prestart(std::move(next), now_ms);
  }
}

void Runner::step_prestarted(std::int64_t now_ms) {
  for (const auto& [name, ready] : prestarted_) ready->step(now_ms);
  give_up_misplaced(now_ms);
  for (const auto& batch : given_up_) batch->step(now_ms);
  std::erase_if(given_up_, [](const auto& batch) { return batch->over(); });
}

void Runner::give_up(std::shared_ptr<RunningBatch> batch, std::int64_t now_ms) {
  batch->stop(now_ms);
  given_up_.push_back(std::move(batch));
}

void Runner::give_up_misplaced(std::int64_t now_ms) {
  std::vector<std::string> misplaced;
  for (const auto& [name, ready] : prestarted_)
    if (!schedule_.prestarted(name) || ready->over()) misplaced.push_back(name);
  for (const std::string& name : misplaced) {
    std::shared_ptr<RunningBatch> batch = std::move(prestarted_.extract(name).mapped());
    // Its folders are in use until its processes are gone: its cases start under another name.
    schedule_.drop(name);
    waiting_.erase(name);
    if (divergences_.erase(name) == 0) add({.attempts = batch->not_done()});
    give_up(std::move(batch), now_ms);
  }
}

void Runner::give_up_prestarted(std::int64_t now_ms) {
  while (!prestarted_.empty())
    give_up(std::move(prestarted_.extract(prestarted_.begin()).mapped()), now_ms);
}

void Runner::refuse(const std::string& batch, std::int64_t now_ms) {
  const auto group = waiting_.extract(batch);
  if (divergences_.erase(batch) > 0) return;
  BatchRequest refused = request(group.mapped(), batch, {});
  refused.refused = record::Infra{setup_.run.device == "cuda" ? "gpu" : "node",
                                  "needs " + std::to_string(slots_of(group.mapped())) +
                                      " slots, and too few are left: " + quarantine_};
  BatchRun run(std::move(refused), now_ms);
  for (record::Context& context : run.step(now_ms)) case_ended(std::move(context));
}

BatchRequest Runner::request(const CaseGroup& group, const std::string& name,
                             const std::vector<Slot>& slots) const {
  BatchRequest request = batch_request(setup_.run, setup_.folder, group, name);
  request.node_folder = folders_->node();
  request.shm_folder = folders_->shm();
  request.nvml = nvml_.get();
  request.gpu_health = gpu_health_.get();
  request.processes = &processes_;
  request.job.program = setup_.rank_program;
  if (setup_.run.device == "cuda" && !setup_.allocation)
    for (const Slot slot : slots) request.job.gpus.push_back(setup_.gpus.at(slot));
  if (!cpus_.empty())
    for (const Slot slot : slots)
      request.job.cpus.insert(request.job.cpus.end(), cpus_.at(slot).begin(), cpus_.at(slot).end());
  return request;
}

void Runner::step_batches(std::int64_t now_ms) {
  for (auto next = running_.begin(); next != running_.end();) {
    RunningBatch& batch = **next;
    const bool divergence = looks_for_divergence(batch);
    if (divergence && now_ms - divergences_.at(batch.batch().batch).started_ms > kDivergence_ms)
      batch.stop(now_ms);
    for (record::Context& context : batch.step(now_ms)) {
      check_gpus(batch, context, now_ms);
      if (context.infra) met_infra_.insert(context.batch);
      if (!divergence) case_ended(std::move(context));
    }
    if (batch.prestart_failed()) {
      // Its folders are in use until its processes are gone, so its cases start under another name;
      // and cold, as all do from now on: what goes wrong there is not to be tried for ever.
      say("the ranks of batch " + batch.batch().batch +
          " ended before they were told to begin: no more are started ahead");
      prestart_ = false;
      schedule_.release(batch.batch().batch);
      if (divergence)
        divergence_ended(batch.batch().batch);
      else if (!stopped_)
        add({.attempts = batch.not_done()});
      std::shared_ptr<RunningBatch> failed = std::move(*next);
      next = running_.erase(next);
      give_up(std::move(failed), now_ms);
      continue;
    }
    if (!batch.over()) {
      ++next;
      continue;
    }
    leased_ms_ +=
        batch.batch().world_size * (now_ms - started_at_ms_.extract(batch.batch().batch).mapped());
    if (const auto unkillable = batch.unkillable(); !unkillable.empty()) {
      withdraw(schedule_.slots_of(batch.batch().batch), "held by " + matrix::listed(unkillable) +
                                                            " of batch " + batch.batch().batch +
                                                            ", which even SIGKILL does not end");
    }
    // While its GPUs are nobody's.
    if (const BatchRun* here = of_this_host(*next);
        here && met_infra_.erase(batch.batch().batch) > 0)
      say_what_is_ill(here->gpus());
    schedule_.release(batch.batch().batch);
    std::vector<Attempt> left = batch.not_done();
    if (divergence)
      divergence_ended(batch.batch().batch);
    else if (!left.empty() && !stopped_)
      add({.attempts = std::move(left)}, avoided(batch.batch().batch));
    next = running_.erase(next);
    std::vector<int> known = setup_.allocation ? setup_.allocation->children() : std::vector<int>();
    for (const auto& other : running_) known.push_back(other->starter_pid());
    for (const auto& [name, ready] : prestarted_) known.push_back(ready->starter_pid());
    for (const auto& batch : given_up_) known.push_back(batch->starter_pid());
    if (judges_.idle()) reap_orphans(known);
  }
}

void Runner::check_gpus(RunningBatch& batch, const record::Context& context, std::int64_t now_ms) {
  const std::string& name = batch.batch().batch;
  const std::vector<Slot> slots = schedule_.slots_of(name);
  if (context.infra && context.infra->kind == "gpu" && !ill_.contains(name)) {
    ill_.emplace(name, slots);
    if (const std::vector<Slot> out = schedule_.strike(name); !out.empty())
      withdraw(out, context.infra->why);
    batch.stop(now_ms);  // its other cases run elsewhere
  }
  if (!context.cleanup.gpu_memory) return;
  // Whatever holds it would be part of the next case's measurements.
  for (const auto& [gpu, bytes] : *context.cleanup.gpu_memory) {
    const Slot slot = slots.at(static_cast<std::size_t>(gpu));
    const std::string users =
        nvml_ && !setup_.allocation
            ? " (on it now, as the driver tells: " + nvml_->users(setup_.gpus.at(slot)) + ")"
            : "";
    withdraw({slot}, std::to_string(bytes) + " bytes stayed in use after batch " + name + users);
  }
}

void Runner::withdraw(const std::vector<Slot>& slots, const std::string& why) {
  schedule_.withdraw(slots);
  std::string names;
  for (const Slot slot : slots) names += (names.empty() ? "" : ", ") + std::to_string(slot);
  const std::string text = "slots " + names + ": " + why;
  quarantine_ += (quarantine_.empty() ? "" : "; ") + text;
  say("not leased again, " + text);
}

std::vector<Slot> Runner::avoided(const std::string& batch) const {
  const auto found = ill_.find(batch);
  return found == ill_.end() ? std::vector<Slot>() : found->second;
}

void Runner::case_ended(record::Context context) {
  const fs::path folder = setup_.folder / attempt_folder(context.case_id, context.attempt);
  std::error_code exists;
  fs::create_directories(folder, exists);
  record::write_json(folder / "context.json", record::to_json(context), record::Survives::kill);
  record::PlanLine line = *line_of_.at(context.case_id);
  judging_.emplace(folder, Ended{std::move(context), std::move(line)});
  judges_.add(folder);
}

void Runner::case_judged(const JudgePool::Judged& judged, std::int64_t now_ms) {
  // It stays in judging_ until it is recorded: see disk_full().
  const auto place = judging_.find(judged.attempt_folder);
  const Ended& ended = place->second;
  if (!judged.trouble.empty()) say(ended.line.name + ": " + judged.trouble);
  const reports::OutcomeInput input{ended.line, ended.context, judged.checks, {}, today()};
  reports::Outcome outcome = reports::outcome(input, setup_.effects);
  const record::Context& context = ended.context;
  const auto record = [&] {
    return reports::make_record(input, outcome, setup_.run.run_id,
                                attempt_folder(context.case_id, context.attempt));
  };
  if (reports::exit_code(outcome.verdict, outcome.rule) == record::ExitCode::product) {
    disk_ms_ = 0;
    check_disk(now_ms);  // does not come back if that is what it failed of
  }
  std::optional<record::Record> final_record;
  if (const auto first = first_outcome_.find(context.case_id);
      first != first_outcome_.end() && context.isolation == "process") {
    outcome = reports::fold(first->second, outcome);
    first_outcome_.erase(first);
    const bool again = confirm(ended, outcome);
    const record::Record folded = record();
    keep(folded, !again);
    if (!again) final_record = folded;
  } else if (confirming_.contains(context.case_id)) {
    const bool again = confirm(ended, outcome);
    const record::Record confirmed = record();
    keep(confirmed, !again);
    if (!again) final_record = confirmed;
  } else {
    const record::Record one = record();
    const auto batch = std::find_if(running_.begin(), running_.end(), [&](const auto& running) {
      return running->batch().batch == context.batch;
    });
    // What failed may have left something behind in its processes: none of them runs another case.
    if (is_product_failure(one) && batch != running_.end()) (*batch)->stop(now_ms);
    const bool again = wants_diagnosis(one, ended.line) && !stopped_;
    const bool retry = wants_retry(one);
    const bool confirmed = !again && !retry && confirm(ended, outcome);
    const bool final = !again && !retry && !confirmed;
    keep(one, final);
    if (final) final_record = one;
    if (retry)
      add({.attempts = {{ended.line, context.attempt + 1, why_retry(one)}}},
          avoided(context.batch));
    if (again) {
      Attempt alone{ended.line, context.attempt + 1, why_alone(one)};
      alone.line.isolation = "process";
      add_alone(one, std::move(alone));
    }
  }
  // What shrink asks is whether a case fails, of many cases that mostly do.
  if (final_record && setup_.run.profile != "shrink" &&
      wants_divergence(*final_record, ended.line, setup_.run.profile == "repro"))
    look_for_divergence(*final_record, ended.line);
  judging_.erase(place);
}

void Runner::say_what_is_ill(const std::vector<std::string>& gpus) const {
  std::vector<Finding> findings = examine(look_before_cases(
      setup_.folder, setup_.run.device, setup_.run.slots, gpus, setup_.rank_program));
  // The run's own processes are no leftovers.
  std::erase_if(findings, [](const Finding& one) { return one.check == "leftover_processes"; });
  for (const std::string& text : notable(findings)) say("doctor: " + text);
}

void Runner::look_at_this_host() const {
  if (setup_.allocation || waiting_.empty()) return;
  for (const std::string& text : notable(examine(look_before_cases(
           setup_.folder, setup_.run.device, setup_.run.slots, setup_.gpus, setup_.rank_program))))
    say("doctor: " + text);
}

bool Runner::confirm(const Ended& ended, reports::Outcome& outcome) {
  const int wanted = setup_.run.options.confirm;
  const std::string& kind = ended.line.expect.kind;
  // What is planted or forbidden on purpose has no rate to be measured.
  if (wanted == 0 || kind == "fault" || kind == "hazard" || kind == "rejected") return false;
  auto known = confirming_.find(ended.line.id);
  if (known == confirming_.end()) {
    if (reports::exit_code(outcome.verdict, outcome.rule) != record::ExitCode::product || stopped_)
      return false;
    known = confirming_.emplace(ended.line.id, Confirming{outcome, {}}).first;
  } else {
    // The record of each confirmation says what is known by then, so that none of them alone can
    // pass for the case's.
    known->second.seen.push_back(outcome);
    outcome = reports::confirm(known->second.first, known->second.seen);
  }
  const int seen = static_cast<int>(known->second.seen.size());
  if (seen == wanted || stopped_) {
    confirming_.erase(known);
    return false;
  }
  Attempt again{ended.line, ended.context.attempt + 1,
                "confirmation " + std::to_string(seen + 1) + " of " + std::to_string(wanted) +
                    " of " + std::string(known->second.first.verdict.text())};
  again.line.isolation = "process";
  add({.attempts = {std::move(again)}});
  return true;
}

/// What says nothing about the product is tried once more, elsewhere: on other nodes where these
/// can be had, and on this host's other GPUs if it was a GPU's doing.
bool Runner::wants_retry(const record::Record& record) {
  if (!record.verdict.in("infra") || ++infra_count_[record.case_id] >= kInfraAttempts || stopped_)
    return false;
  const auto ill = ill_.find(record.context.batch);
  return setup_.allocation ||
         (ill != ill_.end() && schedule_.fits_elsewhere(record.ranks, ill->second));
}

void Runner::keep(const record::Record& record, bool final) {
  journal_.append(record);
  junit_.add(record);
  const std::int64_t now_ms = steady_ms();
  if (now_ms >= next_junit_ms_) {
    junit_.write(setup_.folder / "junit.xml");
    const std::int64_t written_ms = steady_ms();
    next_junit_ms_ = written_ms + std::max(kJunit_ms, kJunitShare * (written_ms - now_ms));
  }
  if (!final) return;
  const double expected = line_of_.at(record.case_id)->expected_seconds;
  expected_done_ += expected;
  expected_left_ = std::max(0.0, expected_left_ - expected);
  final_.insert_or_assign(record.case_id, record);
  failed_ += is_product_failure(record);
  stop_for_failures(record);
  if (listener_.finished) listener_.finished(record, progress(now_ms));
}

void Runner::stop_for_failures(const record::Record& record) {
  ++final_now_;
  ++alike_[std::string(record.verdict.text())];
  if (!is_product_failure(record)) return;
  ++failed_now_;
  if (stopped_ || setup_.plan.size() == final_.size()) return;
  const int bound = record.verdict.in("fail.hang") ? kCircuitBreakerHangs : kCircuitBreaker;
  if (setup_.run.options.max_fail > 0 && failed_now_ >= setup_.run.options.max_fail) {
    say("--max-fail " + std::to_string(setup_.run.options.max_fail) +
        " is reached: running cases end, no others start");
    stop_starting(reports::Ending::max_fail);
  } else if (alike_.size() == 1 && final_now_ == bound) {
    say("the first " + std::to_string(bound) + " cases all ended " +
        std::string(record.verdict.text()) +
        ": the run is stopped, because the machine or the build is broken and not a combination");
    stop_starting(reports::Ending::circuit_breaker);
  }
}

reports::Progress Runner::progress(std::int64_t now_ms) const {
  reports::Progress progress;
  progress.planned = static_cast<int>(setup_.plan.size());
  progress.done = static_cast<int>(final_.size()) + skipped_;
  progress.running = static_cast<int>(running_.size());
  progress.failed = failed_;
  progress.elapsed_seconds = static_cast<double>(now_ms - started_ms_) / 1000.0;
  progress.expected_done_seconds = expected_done_;
  progress.expected_left_seconds = expected_left_;
  if (!running_.empty()) progress.now = running_.front()->now_doing();
  return progress;
}

record::Live Runner::live(std::int64_t now_ms) const {
  const reports::Progress seen = progress(now_ms);
  record::Live live{.run_id = setup_.run.run_id,
                    .pid = getpid(),
                    .host = host_name(),
                    .updated_ms = utc_ms(),
                    .elapsed_seconds = earlier_seconds_ + seen.elapsed_seconds,
                    .remaining_seconds = reports::remaining_seconds(seen),
                    .planned = seen.planned,
                    .done = seen.done,
                    .failed = seen.failed,
                    .stopping = stopped_ ? std::string(reports::name(*stopped_)) : "",
                    .running = {}};
  for (const auto& batch : running_) live.running.push_back(batch->live(now_ms));
  return live;
}

}  // namespace graphproof::launcher

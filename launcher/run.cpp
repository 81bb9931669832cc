#include "launcher/run.h"

#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>

#include "launcher/batch_run.h"
#include "launcher/batches.h"
#include "launcher/judge_pool.h"
#include "launcher/run_folder.h"
#include "launcher/schedule.h"
#include "reports/faults.h"
#include "reports/junit.h"
#include "reports/markdown.h"
#include "reports/record/file.h"
#include "reports/record/journal.h"
#include "reports/summary.h"

namespace graphproof::launcher {
namespace {

namespace fs = std::filesystem;

// Heartbeats are read and children looked at this often; a child's end wakes the loop at once.
constexpr std::chrono::milliseconds kRound{10};
constexpr std::int64_t kProgress_ms = 200;
// junit.xml is written again at most this often: with thousands of cases it is not small.
constexpr std::int64_t kJunit_ms = 2000;

std::int64_t steady_ms() {
  using namespace std::chrono;
  return duration_cast<milliseconds>(steady_clock::now().time_since_epoch()).count();
}

/// Signals as numbers that the loop reads. A child's end only wakes it.
class Signals {
 public:
  Signals() : set_(context_, SIGINT, SIGTERM, SIGCHLD) {
    // Who started us with nohup wants the run to outlive the terminal.
    struct sigaction hangup;
    if (sigaction(SIGHUP, nullptr, &hangup) == 0 && hangup.sa_handler != SIG_IGN) set_.add(SIGHUP);
    wait();
  }
  /// Returns after `time`, or earlier when a signal arrived.
  void wait_for(std::chrono::milliseconds time) { context_.run_one_for(time); }
  int interrupts() const { return interrupts_; }

 private:
  void wait() {
    set_.async_wait([this](const boost::system::error_code& error, int signal) {
      if (error) return;
      if (signal != SIGCHLD) ++interrupts_;
      wait();
    });
  }
  boost::asio::io_context context_;
  boost::asio::signal_set set_;
  int interrupts_ = 0;
};

/// The folders of a run that never leave this host.
struct HostFolders {
  explicit HostFolders(const std::string& run_id) {
    const std::string name = "graphproof-" + std::to_string(getuid()) + "-" + run_id.substr(run_id.size() - 4) + "-" +
                             std::to_string(getpid());
    node = std::make_unique<PrivateFolder>(fs::temp_directory_path() / name);
    // Without /dev/shm, shared memory goes to files: slower, and a machine that has none has few ranks.
    std::error_code absent;
    shm = std::make_unique<PrivateFolder>(
        (fs::is_directory("/dev/shm", absent) && access("/dev/shm", W_OK) == 0 ? fs::path("/dev/shm") : node->path()) /
        (name + "-shm"));
  }
  std::unique_ptr<PrivateFolder> node, shm;
};

std::string today() { return utc_text(std::time(nullptr)).substr(0, 10); }

class Runner {
 public:
  Runner(const RunSetup& setup, const RunListener& listener)
      : setup_(setup), listener_(listener), started_ms_(steady_ms()), schedule_(setup.run.slots),
        junit_(setup.run.profile, setup.run_name, setup.plan), judges_(setup.judge_program),
        gpu_memory_(setup.run.device == "cuda" ? GpuMemory::open() : nullptr) {
    for (const record::PlanLine& line : setup.plan) {
      line_of_.emplace(line.id, &line);
      if (line.skip)
        ++skipped_;
      else
        expected_left_ += line.expected_seconds;
    }
  }

  reports::RunResult run();

 private:
  struct Ended {
    record::Context context;
    record::PlanLine line;
  };

  void write_first();
  void end_all();
  void round(std::int64_t now_ms);
  void heed_interrupts(std::int64_t now_ms);
  void start_batches(std::int64_t now_ms);
  void step_batches(std::int64_t now_ms);
  void case_ended(record::Context context);
  void case_judged(const JudgePool::Judged& judged, std::int64_t now_ms);
  void keep(const record::Record& record, bool final);
  void run_alone(const record::PlanLine& line, const reports::Outcome& first);
  void add(CaseGroup group);
  void stop_starting(reports::Ending ending);
  BatchRequest request(const CaseGroup& group, const Start& start) const;
  record::Limits limits_of(const record::PlanLine& line) const;
  reports::Progress progress(std::int64_t now_ms) const;
  void say(const std::string& text) const {
    if (listener_.said) listener_.said(text);
  }

  const RunSetup& setup_;
  const RunListener& listener_;
  const std::int64_t started_ms_;
  Signals signals_;
  Schedule schedule_;
  reports::Junit junit_;
  JudgePool judges_;
  std::unique_ptr<GpuMemory> gpu_memory_;
  std::unique_ptr<HostFolders> folders_;
  std::unique_ptr<record::JournalWriter> journal_;
  std::map<std::string, const record::PlanLine*> line_of_;
  std::map<std::string, CaseGroup> waiting_;                // by batch name
  std::list<std::unique_ptr<BatchRun>> running_;
  std::map<fs::path, Ended> judging_;                       // by attempt folder
  std::map<std::string, reports::Outcome> first_outcome_;   // of cases that run again alone
  std::map<std::string, record::Record> final_;
  std::optional<reports::Ending> stopped_;                  // nothing is started any more
  int heeded_interrupts_ = 0, batch_count_ = 0, failed_ = 0, skipped_ = 0;
  std::map<std::string, int> alike_;                        // verdict -> final records
  double expected_done_ = 0, expected_left_ = 0;
  std::int64_t junit_ms_ = 0, progress_ms_ = 0;
};

reports::RunResult Runner::run() {
  write_first();
  // Orphans of a batch come to us instead of to init, so that they can be waited for.
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  folders_ = std::make_unique<HostFolders>(setup_.run.run_id);
  for (CaseGroup& group : group_cases(setup_.plan, setup_.run.device, schedule_.slot_count())) add(std::move(group));
  try {
    while (!schedule_.idle() || !running_.empty() || !judges_.idle()) {
      round(steady_ms());
      signals_.wait_for(kRound);
    }
  } catch (const record::WriteError& error) {
    // A full disk: what is in the journal stands, the rest did not run.
    say(error.what());
    stopped_ = reports::Ending::interrupted;
    end_all();
  } catch (...) {
    end_all();
    throw;
  }
  reap_orphans({});
  const double wall_seconds = static_cast<double>(steady_ms() - started_ms_) / 1000.0;
  return reports::read_run_result(setup_.folder, stopped_.value_or(reports::Ending::finished), wall_seconds);
}

void Runner::end_all() {
  for (const auto& batch : running_) batch->stop(steady_ms());
  for (const auto& batch : running_)
    while (!batch->over()) {
      batch->step(steady_ms());
      signals_.wait_for(kRound);
    }
  running_.clear();
}

void Runner::write_first() {
  record::write_json(setup_.folder / "run.json", record::to_json(setup_.run));
  std::string lines;
  for (const record::PlanLine& line : setup_.plan) lines += record::to_line(line);
  record::write_atomically(setup_.folder / "plan.jsonl", lines);
  journal_ = std::make_unique<record::JournalWriter>(setup_.folder / "journal.jsonl");
  junit_.write(setup_.folder / "junit.xml");
}

void Runner::round(std::int64_t now_ms) {
  heed_interrupts(now_ms);
  if (setup_.budget_ms > 0 && !stopped_ && now_ms - started_ms_ > setup_.budget_ms) {
    say("the time budget is over: running cases end, no others start");
    stop_starting(reports::Ending::budget);
  }
  step_batches(now_ms);
  for (const JudgePool::Judged& judged : judges_.step(now_ms)) case_judged(judged, now_ms);
  start_batches(now_ms);
  if (now_ms - progress_ms_ >= kProgress_ms && listener_.progress) {
    progress_ms_ = now_ms;
    listener_.progress(progress(now_ms));
  }
}

void Runner::heed_interrupts(std::int64_t now_ms) {
  const int interrupts = signals_.interrupts();
  if (interrupts == heeded_interrupts_) return;
  heeded_interrupts_ = interrupts;
  if (interrupts == 1) {
    say("interrupted: running cases end, no others start; once more ends them at once");
    stop_starting(reports::Ending::interrupted);
  } else {
    say("interrupted again: ending all processes");
    for (const auto& batch : running_) batch->stop(now_ms);
  }
}

void Runner::stop_starting(reports::Ending ending) {
  if (!stopped_) stopped_ = ending;
  for (const std::string& name : schedule_.drop_waiting()) waiting_.erase(name);
  for (const auto& batch : running_) batch->stop_after_case();
}

void Runner::add(CaseGroup group) {
  char name[16];
  std::snprintf(name, sizeof name, "b%03d", ++batch_count_);
  schedule_.add({name, group.ranks(), group.expected_seconds()});
  waiting_.emplace(name, std::move(group));
}

void Runner::start_batches(std::int64_t now_ms) {
  for (const Start& start : schedule_.start()) {
    const auto group = waiting_.extract(start.batch);
    running_.push_back(std::make_unique<BatchRun>(request(group.mapped(), start), now_ms));
  }
}

record::Limits Runner::limits_of(const record::PlanLine& line) const {
  record::Limits limits = setup_.limits_ms;
  for (const auto& [phase, limit_ms] : line.limits_ms) limits[phase] = limit_ms;
  return limits;
}

BatchRequest Runner::request(const CaseGroup& group, const Start& start) const {
  BatchRequest request;
  request.run_folder = setup_.folder;
  request.node_folder = folders_->node->path();
  request.shm_folder = folders_->shm->path();
  request.gpu_memory = gpu_memory_.get();
  request.lines = group.lines;
  record::Batch& batch = request.batch;
  batch.run_id = setup_.run.run_id;
  batch.batch = start.batch;
  batch.device = setup_.run.device;
  batch.world_size = group.ranks();
  batch.seed = setup_.run.seed;
  batch.isolation = group.lines.front().isolation;
  for (const record::PlanLine& line : group.lines) {
    request.limits_ms.push_back(limits_of(line));
    for (const auto& [phase, limit_ms] : request.limits_ms.back())
      batch.limits_ms[phase] = std::max(batch.limits_ms[phase], limit_ms);
    batch.cases.push_back({line.id, line.name, group.attempt, line.axes,
                           setup_.folder / attempt_folder(line.id, group.attempt)});
  }
  request.job.world_size = group.ranks();
  request.job.device = setup_.run.device;
  request.job.program = setup_.rank_program;
  request.job.environment = {group.lines.front().environment.begin(), group.lines.front().environment.end()};
  if (setup_.run.device == "cuda")
    for (const Slot slot : start.slots) request.job.gpus.push_back(setup_.gpus.at(slot));
  return request;
}

void Runner::step_batches(std::int64_t now_ms) {
  for (auto next = running_.begin(); next != running_.end();) {
    BatchRun& batch = **next;
    for (record::Context& context : batch.step(now_ms)) case_ended(std::move(context));
    if (!batch.over()) {
      ++next;
      continue;
    }
    schedule_.release(batch.batch().batch);
    std::vector<record::PlanLine> left = batch.not_done();
    if (!left.empty() && !stopped_) add({std::move(left), batch.batch().cases.front().attempt});
    next = running_.erase(next);
    std::vector<int> known;
    for (const auto& other : running_) known.push_back(other->starter_pid());
    if (judges_.idle()) reap_orphans(known);
  }
}

void Runner::case_ended(record::Context context) {
  const fs::path folder = setup_.folder / attempt_folder(context.case_id, context.attempt);
  std::error_code exists;
  fs::create_directories(folder, exists);
  record::write_json(folder / "context.json", record::to_json(context));
  record::PlanLine line = *line_of_.at(context.case_id);
  judging_.emplace(folder, Ended{std::move(context), std::move(line)});
  judges_.add(folder);
}

void Runner::case_judged(const JudgePool::Judged& judged, std::int64_t now_ms) {
  const auto node = judging_.extract(judged.attempt_folder);
  const Ended& ended = node.mapped();
  if (!judged.trouble.empty()) say(ended.line.name + ": " + judged.trouble);
  const reports::OutcomeInput input{ended.line, ended.context, judged.checks, {}, today(), {}};
  reports::Outcome outcome = reports::outcome(input, setup_.effects);
  const record::Context& context = ended.context;
  const auto record = [&] {
    return reports::make_record(input, outcome, setup_.run.run_id, attempt_folder(context.case_id, context.attempt));
  };
  if (const auto first = first_outcome_.find(context.case_id); first != first_outcome_.end()) {
    outcome = reports::fold(first->second, outcome);
    return keep(record(), true);
  }
  const bool failed = reports::exit_code(outcome.verdict, outcome.rule) == record::ExitCode::product;
  const auto batch = std::find_if(running_.begin(), running_.end(), [&](const auto& running) {
    return running->batch().batch == context.batch;
  });
  const bool shared = context.isolation == "batch" && ended.line.expect.kind != "fault";
  // What failed may have left something behind in its processes: none of them runs another case.
  if (failed && batch != running_.end()) (*batch)->stop(now_ms);
  const bool again = failed && shared && !stopped_;
  keep(record(), !again);
  if (again) run_alone(ended.line, outcome);
}

void Runner::run_alone(const record::PlanLine& line, const reports::Outcome& first) {
  first_outcome_.emplace(line.id, first);
  record::PlanLine alone = line;
  alone.isolation = "process";
  add({{alone}, 2});
}

void Runner::keep(const record::Record& record, bool final) {
  journal_->append(record);
  junit_.add(record);
  const std::int64_t now_ms = steady_ms();
  if (now_ms - junit_ms_ >= kJunit_ms) {
    junit_ms_ = now_ms;
    junit_.write(setup_.folder / "junit.xml");
  }
  if (!final) return;
  const double expected = line_of_.at(record.case_id)->expected_seconds;
  expected_done_ += expected;
  expected_left_ = std::max(0.0, expected_left_ - expected);
  final_.insert_or_assign(record.case_id, record);
  ++alike_[std::string(record.verdict.text())];
  const bool failed = reports::exit_code(record.verdict, record.rule) == record::ExitCode::product;
  failed_ += failed;
  const std::size_t bound = record.verdict.in("fail.hang") ? kCircuitBreakerHangs : kCircuitBreaker;
  if (failed && !stopped_ && alike_.size() == 1 && final_.size() == bound && setup_.plan.size() > final_.size()) {
    say("the first " + std::to_string(bound) + " cases all ended " + std::string(record.verdict.text()) +
        ": the run is stopped, because the machine or the build is broken and not a combination");
    stop_starting(reports::Ending::circuit_breaker);
  }
  if (listener_.finished) listener_.finished(record, progress(now_ms));
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

}  // namespace

void write_reports(const reports::RunResult& result, const fs::path& folder) {
  reports::Junit junit(result.run.profile, result.run_name, [&] {
    std::vector<record::PlanLine> plan;
    for (const reports::CaseResult& one : result.cases) plan.push_back(one.plan);
    return plan;
  }());
  for (const reports::CaseResult& one : result.cases) junit.add(one.record);
  junit.write(folder / "junit.xml");
  record::write_json(folder / "summary.json", record::to_json(reports::summary(result)));
  record::write_atomically(folder / "summary.md", reports::markdown(result));
  record::write_json(folder / "faults.json", record::to_json(reports::faults(result)));
}

reports::RunResult run(const RunSetup& setup, const RunListener& listener) {
  Runner runner(setup, listener);
  reports::RunResult result = runner.run();
  result.run_name = setup.run_name;
  write_reports(result, setup.folder);
  return result;
}

reports::RunResult read_run(const fs::path& folder) {
  const fs::path file = folder / "summary.json";
  std::error_code absent;
  double wall_seconds = 0;
  bool finished = false;
  if (fs::exists(file, absent)) {
    const record::Summary summary = record::summary_from(record::read_json(file), file);
    wall_seconds = summary.wall_seconds;
    finished = summary.finished;
  }
  return reports::read_run_result(folder, finished ? reports::Ending::finished : reports::Ending::interrupted,
                                  wall_seconds);
}

}  // namespace graphproof::launcher

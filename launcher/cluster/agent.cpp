#include "launcher/cluster/agent.h"

#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <sstream>
#include <system_error>

#include "launcher/batch/attempt_folder.h"
#include "launcher/batch/batch_host.h"
#include "launcher/batch/batch_run.h"
#include "launcher/cluster/channel.h"
#include "launcher/doctor/doctor.h"
#include "launcher/host/cgroup.h"
#include "launcher/host/clocks.h"
#include "launcher/host/host_folders.h"
#include "launcher/host/signals.h"
#include "reports/record/job/agent.h"
#include "reports/record/job/live.h"
#include "reports/record/text/file.h"

namespace graphproof::cluster {
namespace {

namespace fs = std::filesystem;
using launcher::BatchRun;

constexpr std::chrono::milliseconds kRound{10};
constexpr std::int64_t kLive_ms = 1000;
// Slurm signals the processes of a job one after the other, and a busy node makes that slow.
constexpr std::int64_t kOwnSignal_ms = 2000;
constexpr int kLeft = 0, kGaveUp = 5;

std::string value_of(const launcher::Environment& environment, const std::string& name) {
  const auto found = environment.find(name);
  return found == environment.end() ? "" : found->second;
}

std::string host_name() {
  char name[256] = "";
  gethostname(name, sizeof name - 1);
  return name;
}

class Agent {
 public:
  Agent(const AgentSetup& setup, const launcher::Environment& environment)
      : setup_(setup),
        environment_(environment),
        channel_(channel_folder(setup.channels, agent_number(environment))),
        orders_(orders_file(channel_)),
        run_(record::run_from(record::read_json(setup.run_folder / "run.json"),
                              setup.run_folder / "run.json")),
        interval_(look_interval(channel_)),
        started_ms_(launcher::steady_ms()),
        launcher_ms_(started_ms_) {
    const fs::path plan = setup.run_folder / "plan.jsonl";
    for (record::PlanLine& line : record::plan_from(record::read_text(plan), plan)) {
      const std::string id = line.id;
      plan_.emplace(id, std::move(line));
    }
    node_ = value_of(environment, "SLURMD_NODENAME");
    if (node_.empty()) node_ = host_name();
    job_ = value_of(environment, "SLURM_JOB_ID");
    if (run_.device == "cuda") read_gpus();
    host_.emplace(run_, launcher::BatchHostSetup{.run_folder = setup.run_folder,
                                                 .rank_program = setup.rank_program,
                                                 .gpus = gpus_});
  }

  int run() {
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    launcher::remove_abandoned_host_folders(run_.run_id);
    launcher::remove_cgroups(run_.run_id + ".");
    // Array tasks have one batch each, and a node may have many: an all-reduce of each would cost
    // more than most of their cases.
    const bool whole = value_of(environment_, "SLURM_ARRAY_TASK_ID").empty();
    const auto findings = launcher::examine(
        whole ? launcher::look_before_cases(setup_.run_folder, run_.device, setup_.slots, gpus_,
                                            setup_.rank_program)
              : launcher::look_at_host(setup_.run_folder, run_.device, setup_.slots, gpus_, {}));
    report({.report = "hello", .node = node_, .pid = getpid(), .job = job_, .gpus = gpus_});
    for (const std::string& text : launcher::notable(findings))
      report({.report = "doctor", .why = text});
    while (!(leaving_ && running_.empty() && prestarted_.empty() && given_up_.empty())) {
      round(launcher::steady_ms());
      signals_.wait_for(kRound);
    }
    launcher::reap_orphans({});
    host_.reset();  // before the last line: whoever reads it finds nothing of this run here
    report({.report = "leaving", .why = why_});
    return ordered_to_leave_ ? kLeft : kGaveUp;
  }

 private:
  using Batches = std::map<std::string, std::shared_ptr<BatchRun>>;

  /// The GPUs of this node, as the scheduler lent them. Throws record::ReadError.
  void read_gpus() {
    std::istringstream visible(value_of(environment_, "CUDA_VISIBLE_DEVICES"));
    for (std::string gpu; std::getline(visible, gpu, ',');) gpus_.push_back(gpu);
    if (static_cast<int>(gpus_.size()) < setup_.slots)
      throw record::ReadError(
          {.what = "node " + node_ + " has too few GPUs for its slots",
           .got = "CUDA_VISIBLE_DEVICES=" + value_of(environment_, "CUDA_VISIBLE_DEVICES"),
           .want = std::to_string(setup_.slots) + " GPUs",
           .why = "each slot of the plan is a GPU",
           .next = "ask the scheduler for that many: --slots is passed to it as --gres=gpu:N"});
  }

  void round(std::int64_t now_ms) {
    if (signals_.interrupts() > 0) leave("a signal: the allocation ends", now_ms);
    if (now_ms - looked_ms_ >= interval_.count()) {
      looked_ms_ = now_ms;
      for (const std::string& line : orders_.next())
        obey(record::order_from(record::parse_json(line, orders_file(channel_)),
                                orders_file(channel_)),
             now_ms);
    }
    step_batches(now_ms);
    step_prestarted(now_ms);
    if (now_ms - live_ms_ < kLive_ms) return;
    live_ms_ = now_ms;
    look_for_launcher(now_ms);
    record::write_json(live_file(channel_), record::to_json(live(now_ms)));
  }

  void obey(const record::Order& order, std::int64_t now_ms) {
    if (order.order == "leave") {
      ordered_to_leave_ = true;
      return leave("the launcher ordered it", now_ms);
    }
    if (order.order == "start") {
      if (!leaving_)
        running_.insert_or_assign(order.batch, std::make_shared<BatchRun>(request(order), now_ms));
      return;
    }
    if (order.order == "hold") return prestart(order, now_ms);
    if (const auto deferred = deferred_.find(order.batch); deferred != deferred_.end()) {
      const record::Order start = std::move(deferred_.extract(deferred).mapped());
      if (order.order == "go") {
        if (!leaving_)
          running_.emplace(order.batch, std::make_shared<BatchRun>(request(start), now_ms));
        return;
      }
      record::Report over{.report = "over", .batch = order.batch};
      for (const record::OrderedCase& one : start.cases) over.not_done.push_back(one.case_id);
      return report(over);
    }
    if (const auto waiting = prestarted_.find(order.batch); waiting != prestarted_.end()) {
      if (order.order == "stop") give_up(prestarted_.extract(waiting), now_ms);
      if (order.order != "go") return;
      waiting->second->begin();
      running_.insert(prestarted_.extract(waiting));
      return;
    }
    // A batch may be over before its launcher knows.
    const auto batch = running_.find(order.batch);
    if (batch == running_.end()) return;
    if (order.order == "stop") batch->second->stop(now_ms);
    if (order.order == "stop_after_case") batch->second->stop_after_case();
  }

  void prestart(const record::Order& order, std::int64_t now_ms) {
    if (leaving_) return;
    if (host_->exclusive_process()) {
      deferred_.emplace(order.batch, order);
      return;
    }
    if (const auto predecessor = running_.find(order.predecessor); predecessor != running_.end()) {
      prestarted_.emplace(order.batch, predecessor->second->prestart(request(order), now_ms));
      return;
    }
    // The predecessor is over, which the launcher did not know yet.
    launcher::BatchRequest next = request(order);
    next.prestarted = true;
    prestarted_.emplace(order.batch, std::make_shared<BatchRun>(std::move(next), now_ms))
        .first->second->allow_device();
  }

  void give_up(Batches::node_type batch, std::int64_t now_ms) {
    batch.mapped()->stop(now_ms);
    given_up_.insert(std::move(batch));
  }

  void step_prestarted(std::int64_t now_ms) {
    for (const auto& [name, batch] : prestarted_) batch->step(now_ms);
    for (const auto& [name, batch] : given_up_) {
      batch->step(now_ms);
      if (batch->over()) over(name, *batch);
    }
    std::erase_if(given_up_, [](const auto& one) { return one.second->over(); });
  }

  launcher::BatchRequest request(const record::Order& order) {
    launcher::CaseGroup group;
    for (const record::OrderedCase& one : order.cases) {
      group.attempts.push_back({plan_.at(one.case_id), one.attempt, one.again});
      group.attempts.back().line.isolation = order.isolation;
    }
    return host_->request(group, order.batch, order.slots);
  }

  void step_batches(std::int64_t now_ms) {
    for (auto next = running_.begin(); next != running_.end();) {
      BatchRun& batch = *next->second;
      for (record::Context& context : batch.step(now_ms)) {
        if (context.infra && context.infra->kind == "preempted")
          preempted_.insert_or_assign(next->first, Preempted{std::move(context), now_ms});
        else
          hand_over(context);
      }
      if (batch.prestart_failed()) {
        report({.report = "lost", .batch = next->first});
        const auto failed = next++;
        give_up(running_.extract(failed), now_ms);
        continue;
      }
      const auto preempted = preempted_.find(next->first);
      if (!batch.over() ||
          (preempted != preempted_.end() && now_ms - preempted->second.since_ms < kOwnSignal_ms)) {
        ++next;
        continue;
      }
      if (preempted != preempted_.end()) hand_over(preempted_.extract(preempted).mapped().context);
      if (met_infra_.erase(next->first) > 0) look(batch.gpus());
      over(next->first, batch);
      next = running_.erase(next);
      std::vector<int> known;
      for (const Batches* batches : {&running_, &prestarted_, &given_up_})
        for (const auto& [name, other] : *batches) known.push_back(other->starter_pid());
      launcher::reap_orphans(known);
    }
  }

  void over(const std::string& name, const BatchRun& batch) const {
    record::Report over{.report = "over", .batch = name, .unkillable = batch.unkillable()};
    for (const launcher::Attempt& attempt : batch.not_done())
      over.not_done.push_back(attempt.line.id);
    // After a signal the launcher itself decides what was in progress.
    if (!leaving_ || ordered_to_leave_) report(over);
  }

  /// Runs the doctor on the GPUs of a batch that met trouble.
  void look(const std::vector<std::string>& gpus) const {
    for (const std::string& text : launcher::notable(launcher::examine(launcher::look_before_cases(
             setup_.run_folder, run_.device, setup_.slots, gpus, setup_.rank_program))))
      report({.report = "doctor", .why = text});
  }

  void hand_over(const record::Context& context) {
    // The end of an allocation ends the ranks as well. That is not how the case ends.
    if (leaving_) return;
    const fs::path folder =
        setup_.run_folder / launcher::attempt_folder(context.case_id, context.attempt);
    std::error_code exists;
    fs::create_directories(folder, exists);
    record::write_json(folder / "context.json", record::to_json(context));
    if (context.infra) met_infra_.insert(context.batch);
    report({.report = "ended",
            .batch = context.batch,
            .case_id = context.case_id,
            .attempt = context.attempt});
  }

  void look_for_launcher(std::int64_t now_ms) {
    std::error_code absent;
    if (fs::exists(revoked_file(setup_.channels), absent) ||
        fs::exists(revoked_file(channel_), absent))
      return leave("the launcher has given this node up", now_ms);
    const auto written = fs::last_write_time(setup_.run_folder / "live.json", absent);
    if (!absent && written != launcher_written_) {
      launcher_written_ = written;
      launcher_ms_ = now_ms;
    }
    if (now_ms - launcher_ms_ > setup_.launcher_silent_ms)
      leave("nothing was heard of the launcher for " +
                std::to_string(setup_.launcher_silent_ms / 1000) + " s",
            now_ms);
  }

  void leave(const std::string& why, std::int64_t now_ms) {
    if (leaving_) return;
    leaving_ = true;
    why_ = why;
    for (const auto& [name, batch] : running_) batch->stop(now_ms);
    while (!prestarted_.empty()) give_up(prestarted_.extract(prestarted_.begin()), now_ms);
  }

  record::Live live(std::int64_t now_ms) const {
    record::Live live{.run_id = run_.run_id,
                      .pid = getpid(),
                      .host = node_,
                      .updated_ms = launcher::utc_ms(),
                      .elapsed_seconds = static_cast<double>(now_ms - started_ms_) / 1000.0,
                      .remaining_seconds = {},
                      .stopping = "",
                      .running = {}};
    for (const auto& [name, batch] : running_) live.running.push_back(batch->live(now_ms));
    return live;
  }

  void report(const record::Report& report) const {
    append_line(reports_file(channel_), record::to_line(report));
  }

  const AgentSetup& setup_;
  const launcher::Environment& environment_;
  const fs::path channel_;
  LineReader orders_;
  const record::Run run_;
  std::map<std::string, record::PlanLine> plan_;
  launcher::Signals signals_;
  std::optional<launcher::BatchHost> host_;
  std::string node_, job_;
  std::vector<std::string> gpus_;
  Batches running_, prestarted_;  // prestarted: their ranks wait for their turn
  Batches given_up_;  // prestarted batches whose turn did not come, until their processes are gone
  std::map<std::string, record::Order> deferred_;  // by batch: orders to prestart, which wait
                                                   // because a GPU takes one process at a time
  /// A context whose ranks were ended from outside. If that was the end of the allocation, this
  /// agent is ended too, and then the launcher decides.
  struct Preempted {
    record::Context context;
    std::int64_t since_ms = 0;
  };
  std::map<std::string, Preempted> preempted_;  // by batch
  std::set<std::string> met_infra_;             // batches whose cases ended infra.*
  const std::chrono::milliseconds interval_;
  const std::int64_t started_ms_;
  std::int64_t launcher_ms_, looked_ms_ = 0, live_ms_ = 0;
  fs::file_time_type launcher_written_;
  bool leaving_ = false, ordered_to_leave_ = false;
  std::string why_;
};

}  // namespace

int agent_number(const launcher::Environment& environment) {
  for (const char* name : {"SLURM_ARRAY_TASK_ID", "SLURM_NODEID", "OMPI_COMM_WORLD_RANK"}) {
    const std::string text = value_of(environment, name);
    int number = -1;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (!text.empty() && error == std::errc() && end == text.data() + text.size() && number >= 0)
      return number;
  }
  throw record::ReadError(
      {.what = "this agent cannot tell which one it is",
       .got = "none of SLURM_ARRAY_TASK_ID, SLURM_NODEID, OMPI_COMM_WORLD_RANK",
       .want = "one of them",
       .why = "its orders are in a folder of that number",
       .next = "agents are started by graphproof run --launcher slurm, slurm-array or mpirun"});
}

int serve(const AgentSetup& setup, const launcher::Environment& environment) {
  return Agent(setup, environment).run();
}

}  // namespace graphproof::cluster

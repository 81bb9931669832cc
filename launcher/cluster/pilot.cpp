#include "launcher/cluster/pilot.h"

#include <signal.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <system_error>
#include <thread>
#include <utility>

#include "launcher/batch/batch_run.h"
#include "launcher/cluster/clear_queue.h"
#include "launcher/host/clocks.h"
#include "launcher/host/processes.h"
#include "reports/record/text/file.h"
#include "reports/record/text/message.h"

namespace graphproof::cluster {
namespace {

namespace fs = std::filesystem;

// How often live.json of a node is read: it is written once a second.
constexpr std::int64_t kPilotLive_ms = 1000;
// After this long the user is notified once that the run waits for its nodes.
constexpr std::int64_t kReportWaiting_ms = 5000;
// The last lines of a starter explain why it ended.
constexpr std::size_t kShown = 300;

// No clock that is kept in step is this far ahead of another.
constexpr std::int64_t kAhead_ms = 5000, kBehind_ms = 120000;

std::string name_of(int pilot) { return "p" + std::to_string(pilot); }

}  // namespace

std::string clock_trouble(const std::string& node, std::int64_t own_utc_ms,
                          std::int64_t node_utc_ms) {
  const std::int64_t ahead_ms = node_utc_ms - own_utc_ms;
  if (ahead_ms <= kAhead_ms && ahead_ms >= -kBehind_ms) return {};
  return "the clock of " + node + " is " + std::to_string(std::abs(ahead_ms) / 1000) + " s " +
         (ahead_ms > 0 ? "ahead of" : "behind") +
         " this host's: times in its logs do not compare with others'; keep both in step by NTP";
}

Pilot::Pilot(PilotSetup setup)
    : setup_(std::move(setup)), interval_(look_interval(setup_.run_folder)) {}

Pilot::~Pilot() {
  if (child_ && !child_->poll()) child_->kill(SIGTERM);
}

fs::path Pilot::channels() const { return setup_.run_folder / "pilots" / name_of(number_); }

std::string Pilot::starter_text() const {
  try {
    return record::read_text(channels() / "starter.log");
  } catch (const record::ReadError&) {
    return "it printed nothing";
  }
}

std::string Pilot::starter_log() const {
  std::string text = starter_text();
  while (!text.empty() && text.back() == '\n') text.pop_back();
  std::replace(text.begin(), text.end(), '\n', ';');
  return text.size() <= kShown ? text : "..." + text.substr(text.size() - kShown);
}

std::vector<int> Pilot::children() const {
  std::vector<int> pids;
  for (const auto* child : {child_.get(), canceller_.get()})
    if (child != nullptr) pids.push_back(child->pid());
  return pids;
}

void Pilot::cancel() {
  if (!setup_.cancel) return;
  try {
    canceller_ = std::make_unique<launcher::Child>(*setup_.cancel,
                                                   setup_.run_folder / "pilots" / "cancel.log");
  } catch (const std::system_error& error) {
    log(std::string("jobs of this run may be left in the queue: ") + error.what());
  }
}

void Pilot::kill_command() const {
  for (const launcher::Process& process : launcher::running_processes())
    if (process.session == child_->pid()) kill(process.pid, SIGKILL);
}

void Pilot::step(std::int64_t now_ms) {
  if (since_ms_ == 0) since_ms_ = now_ms;
  if (now_ms - looked_ms_ < interval_.count()) return;
  looked_ms_ = now_ms;
  if (canceller_ && canceller_->poll()) canceller_.reset();
  switch (stage_) {
    case Stage::clearing:
      return clear(now_ms);
    case Stage::waiting:
      if (now_ms - since_ms_ >= kAgain_ms) ask(now_ms);
      return;
    case Stage::asking:
    case Stage::ready:
      return watch(now_ms);
    case Stage::ending:
      return end(now_ms);
    case Stage::given_up:
      return;
  }
}

void Pilot::clear(std::int64_t now_ms) {
  if (!earlier_) {
    earlier_.emplace(setup_.run_folder);
    number_ = earlier_->folders();
    if (number_ > 0) cancel();
  }
  const int left_behind = earlier_->left_behind();
  if ((left_behind > 0 || canceller_) && now_ms - since_ms_ < kLeave_ms) return;
  if (left_behind > 0)
    log(std::to_string(left_behind) +
        " earlier agents do not answer: their nodes are taken to be gone");
  ask(now_ms);
}

void Pilot::ask(std::int64_t now_ms) {
  ++number_;
  nodes_.clear();
  for (int node = 0; node < setup_.nodes; ++node) {
    const fs::path channel = channel_folder(channels(), node);
    fs::create_directories(channel);
    nodes_.push_back({.channel = channel,
                      .reports = LineReader(reports_file(channel)),
                      .name = "node-" + std::to_string(node),
                      .batches = {}});
  }
  stage_ = Stage::asking;
  since_ms_ = now_ms;
  granted_ms_ = 0;
  waiting_reported_ = false;
  try {
    child_ =
        std::make_unique<launcher::Child>(setup_.command(channels()), channels() / "starter.log");
  } catch (const std::system_error& error) {
    gave_up_ = {"scheduler", error.what()};
    stage_ = Stage::given_up;
    log(std::string("no nodes: ") + error.what());
  }
}

void Pilot::hear(Node& node, std::int64_t now_ms) {
  for (const std::string& line : node.reports.next()) {
    const record::Report report = record::report_from(
        record::parse_json(line, reports_file(node.channel)), reports_file(node.channel));
    node.heard_ms = now_ms;
    if (report.report == "hello") {
      node.hello = true;
      node.name = report.node;
    }
    if (report.report == "doctor") log("doctor: " + node.name + ": " + report.why);
    if (report.report == "leaving") {
      node.left = true;
      return lose({"preempted", "the agent of " + node.name + " left: " + report.why}, now_ms);
    }
    const auto batch = node.batches.find(report.batch);
    if (batch == node.batches.end()) continue;
    if (report.report == "ended") fruitless_ = 0;
    batch->second->reports.push_back(report);
    if (report.report == "over") node.batches.erase(batch);
  }
}

void Pilot::look_at_live(Node& node, std::int64_t now_ms) {
  std::error_code absent;
  if (!fs::exists(live_file(node.channel), absent)) return;
  const record::Live live =
      record::live_from(record::read_json(live_file(node.channel)), live_file(node.channel));
  if (live.updated_ms == node.live_updated_ms) return;
  node.live_updated_ms = live.updated_ms;
  if (const std::string trouble = clock_trouble(node.name, launcher::utc_ms(), live.updated_ms);
      !trouble.empty() && !node.clock_reported) {
    node.clock_reported = true;
    log(trouble);
  }
  node.heard_ms = now_ms;
  for (const record::LiveCase& one : live.running)
    if (const auto batch = node.batches.find(one.batch); batch != node.batches.end())
      batch->second->live = one;
}

void Pilot::watch(std::int64_t now_ms) {
  const std::int64_t looked_before_ms = live_ms_;
  if (now_ms - live_ms_ >= kPilotLive_ms) live_ms_ = now_ms;
  // The starter is asked before reports are read, so that what agents wrote before its end is read
  // below.
  const auto exit = child_->poll();
  for (Node& node : nodes_) {
    hear(node, now_ms);
    if (stage_ == Stage::ending) return;
    if (live_ms_ != looked_before_ms) look_at_live(node, now_ms);
  }
  if (exit)
    return lose({stage_ == Stage::ready ? "node" : "scheduler",
                 "the command that started the agents ended by itself (" +
                     std::string(exit->signalled ? "signal " : "exit code ") +
                     std::to_string(exit->value) + "): " + starter_log()},
                now_ms);
  const auto here =
      std::count_if(nodes_.begin(), nodes_.end(), [](const Node& node) { return node.hello; });
  if (stage_ == Stage::asking && here == setup_.nodes) {
    stage_ = Stage::ready;
    std::string names;
    for (const Node& node : nodes_) names += (names.empty() ? "" : ", ") + node.name;
    log("agents on " + names);
  }
  if (stage_ == Stage::asking) {
    if (live_ms_ != looked_before_ms) wait_for_agents(now_ms);
    return;
  }
  for (const Node& node : nodes_)
    if (now_ms - node.heard_ms > setup_.agent_silent_ms)
      return lose({"node", "nothing was heard of the agent of " + node.name + " for " +
                               std::to_string(setup_.agent_silent_ms / 1000) + " s"},
                  now_ms);
}

void Pilot::wait_for_agents(std::int64_t now_ms) {
  if (granted_ms_ == 0 &&
      (setup_.granted.empty() || starter_text().find(setup_.granted) != std::string::npos))
    granted_ms_ = now_ms;
  std::string missing;
  for (std::size_t node = 0; node < nodes_.size(); ++node)
    if (!nodes_[node].hello) missing += (missing.empty() ? "" : ", ") + std::to_string(node);
  if (!waiting_reported_ && now_ms - since_ms_ > kReportWaiting_ms) {
    waiting_reported_ = true;
    log("waiting for nodes: numbers " + missing + " of " + std::to_string(setup_.nodes) +
        " are missing; " + starter_log());
  }
  if (granted_ms_ != 0 && now_ms - granted_ms_ > setup_.agent_start_ms)
    return lose(
        {"node", "the nodes were granted, but nothing was heard of the agents numbered " + missing +
                     " for " + std::to_string(setup_.agent_start_ms / 1000) + " s"},
        now_ms);
  if (granted_ms_ == 0 && now_ms - since_ms_ > setup_.queue_limit_ms) {
    fruitless_ = kFruitless;  // another start would wait just as long
    lose({"scheduler", "no nodes within " + std::to_string(setup_.queue_limit_ms / 1000) +
                           " s: " + starter_log()},
         now_ms);
  }
}

void Pilot::lose(const record::Infra& why, std::int64_t now_ms) {
  log("the nodes are lost (infra." + why.kind + "): " + why.why);
  append_line(revoked_file(channels()), why.why + "\n");
  for (Node& node : nodes_) {
    for (const auto& [name, mailbox] : node.batches) mailbox->lost = why;
    node.batches.clear();
  }
  ++fruitless_;
  gave_up_ = why;
  if (!child_->poll()) child_->kill(SIGTERM);
  cancel();
  stage_ = Stage::ending;
  since_ms_ = now_ms;
}

void Pilot::end(std::int64_t now_ms) {
  const bool late = now_ms - since_ms_ > kLeave_ms;
  if ((!child_->poll() || canceller_) && !late) return;
  kill_command();
  child_.reset();
  canceller_.reset();
  since_ms_ = now_ms;
  stage_ = fruitless_ < kFruitless ? Stage::waiting : Stage::given_up;
  if (stage_ == Stage::given_up)
    log("the nodes were lost " + std::to_string(fruitless_) +
        " times without a case in between: given up");
}

std::unique_ptr<launcher::RunningBatch> Pilot::start(launcher::BatchRequest request,
                                                     const std::vector<launcher::Slot>& slots,
                                                     std::int64_t now_ms) {
  if (stage_ == Stage::given_up) {
    request.refused = record::Infra{"scheduler", gave_up_.why};
    return std::make_unique<launcher::BatchRun>(std::move(request), now_ms);
  }
  Node& node = nodes_.at(static_cast<std::size_t>(slots.front() / setup_.slots));
  std::vector<int> local;
  for (const launcher::Slot slot : slots) local.push_back(slot % setup_.slots);
  const auto mailbox = std::make_shared<Mailbox>();
  node.batches.emplace(request.batch.batch, mailbox);
  append_line(orders_file(node.channel), record::to_line(start_order(request, std::move(local))));
  return std::make_unique<RemoteBatch>(std::move(request), orders_file(node.channel), mailbox);
}

void Pilot::end_command() {
  bool asked = stage_ == Stage::ready;  // agents that have not arrived read no orders
  try {
    for (const Node& node : nodes_)
      append_line(orders_file(node.channel), record::to_line({.order = "leave"}));
  } catch (const record::WriteError&) {
    asked = false;  // the disk is full: the scheduler ends them
  }
  const auto wait = [&](std::int64_t limit_ms) {
    for (const std::int64_t end_ms = launcher::steady_ms() + limit_ms;
         !child_->poll() && launcher::steady_ms() < end_ms;)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    return child_->poll().has_value();
  };
  if (!asked || !wait(kLeave_ms)) {
    child_->kill(SIGTERM);
    wait(kLeave_ms / 3);
  }
  kill_command();
  child_.reset();
}

void Pilot::release() {
  if (released_) return;
  released_ = true;
  if (child_) end_command();
  canceller_.reset();
  if (!setup_.cancel) return;
  try {
    // Even if this launcher never asked for nodes, an earlier one may have left jobs.
    if (number_ == 0 && EarlierAgents(setup_.run_folder).folders() == 0) return;
  } catch (const record::WriteError&) {
    // Their channels can't be written to; the scheduler ends them.
  }
  if (const std::string trouble = clear_queue(*setup_.cancel, kClear_ms); !trouble.empty())
    log(trouble);
}

}  // namespace graphproof::cluster

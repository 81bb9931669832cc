#include "launcher/cluster/task_array.h"

#include <algorithm>
#include <charconv>
#include <sstream>
#include <system_error>
#include <thread>
#include <utility>

#include "launcher/cluster/clear_queue.h"
#include "launcher/host/clocks.h"
#include "reports/record/text/file.h"
#include "reports/record/text/message.h"

namespace graphproof::cluster {
namespace {

namespace fs = std::filesystem;
using launcher::Child;

constexpr std::int64_t kLookAtLive_ms = 1000;
constexpr std::size_t kShownOfSaid = 300;
/// sbatch takes only a script. This one runs its arguments, whatever they are.
constexpr std::string_view kScript = "#!/bin/sh\nexec \"$@\"\n";

std::string text_of(const fs::path& file) {
  try {
    std::string text = record::read_text(file);
    while (!text.empty() && text.back() == '\n') text.pop_back();
    return text.size() <= kShownOfSaid ? text : "..." + text.substr(text.size() - kShownOfSaid);
  } catch (const record::ReadError&) {
    return {};
  }
}

/// The output file belongs to this command alone.
std::unique_ptr<Child> started(const launcher::Command& command, const fs::path& output) {
  std::error_code absent;
  fs::remove(output, absent);
  return std::make_unique<Child>(command, output);
}

}  // namespace

QueuedTasks read_queue(const std::string& text) {
  QueuedTasks tasks;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t bar = line.find('|'), reason = line.find('|', bar + 1),
                      under = line.find('_');
    if (reason == line.npos || under == line.npos || under > bar) continue;
    int task = -1;
    std::from_chars(line.data() + under + 1, line.data() + bar, task);
    if (task < 0) continue;
    const std::string state = line.substr(bar + 1, reason - bar - 1), why = line.substr(reason + 1);
    if (state == "PENDING" && why.find("launch failed") != why.npos)
      tasks.held.push_back(task);
    else
      (state == "PENDING" || state == "CONFIGURING" || state.starts_with("REQUEUE") ? tasks.waiting
                                                                                    : tasks.running)
          .push_back(task);
  }
  return tasks;
}

TaskArray::TaskArray(record::Cluster cluster, AgentStart start, launcher::Environment own,
                     std::int64_t agent_start_ms)
    : cluster_(std::move(cluster)),
      start_(std::move(start)),
      own_(std::move(own)),
      agent_start_ms_(agent_start_ms),
      interval_(look_interval(start_.run_folder)) {}

TaskArray::~TaskArray() = default;

std::vector<int> TaskArray::children() const {
  std::vector<int> pids;
  for (const Array& array : arrays_)
    for (const auto* child : {array.submitting.get(), array.asking.get()})
      if (child != nullptr) pids.push_back(child->pid());
  for (const Child& child : cancelling_) pids.push_back(child.pid());
  return pids;
}

void TaskArray::step(std::int64_t now_ms) {
  if (!earlier_) {
    earlier_.emplace(start_.run_folder);
    number_ = earlier_->folders();
    since_ms_ = now_ms;
    if (number_ > 0)
      cancelling_.emplace_back(cancel_command(start_.run_id, own_),
                               start_.run_folder / "pilots/cancel.log");
  }
  std::erase_if(cancelling_, [](Child& child) { return child.poll().has_value(); });
  if (!ready_) {
    ready_ =
        (earlier_->left_behind() == 0 && cancelling_.empty()) || now_ms - since_ms_ > kCommand_ms;
    return;
  }
  if (now_ms - looked_ms_ < interval_.count()) return;
  looked_ms_ = now_ms;
  check_leaving(now_ms);
  const bool look_at_live = now_ms - live_ms_ >= kLookAtLive_ms;
  if (look_at_live) live_ms_ = now_ms;
  for (Array& array : arrays_) {
    if (array.job.empty() && !array.submitting && now_ms - array.grown_ms >= kCollect_ms)
      submit(array, now_ms);
    if (array.submitting) check_submission(array, now_ms);
    if (array.job.empty()) continue;
    hear(array, look_at_live, now_ms);
    ask_queue(array, now_ms);
  }
  std::erase_if(arrays_, [](const Array& array) {
    return array.closed &&
           std::none_of(array.tasks.begin(), array.tasks.end(),
                        [](const auto& task) { return task.has_value(); }) &&
           !array.asking;
  });
}

std::unique_ptr<launcher::RunningBatch> TaskArray::start(launcher::BatchRequest request,
                                                         const std::vector<launcher::Slot>& slots,
                                                         std::int64_t now_ms) {
  const int width = static_cast<int>(slots.size());
  auto array = std::find_if(arrays_.begin(), arrays_.end(), [&](const Array& one) {
    return !one.closed && one.slots == width && static_cast<int>(one.tasks.size()) < kTasks;
  });
  if (array == arrays_.end()) {
    array = arrays_.emplace(arrays_.end());
    array->channels = start_.run_folder / "pilots" / ("a" + std::to_string(++number_));
    array->slots = width;
  }
  array->grown_ms = now_ms;
  const fs::path channel = channel_folder(array->channels, static_cast<int>(array->tasks.size()));
  fs::create_directories(channel);
  std::vector<int> own_slots(slots.size());
  for (std::size_t i = 0; i < slots.size(); ++i) own_slots[i] = static_cast<int>(i);
  append_line(orders_file(channel), record::to_line(start_order(request, std::move(own_slots))));
  const auto mailbox = std::make_shared<Mailbox>();
  array->tasks.push_back(
      Task{.channel = channel, .reports = LineReader(reports_file(channel)), .mailbox = mailbox});
  return std::make_unique<RemoteBatch>(std::move(request), orders_file(channel), mailbox);
}

void TaskArray::submit(Array& array, std::int64_t now_ms) {
  array.closed = true;
  array.started_ms = now_ms;
  const fs::path script = array.channels / "script";
  record::write_atomically(script, kScript);
  fs::permissions(script, fs::perms::owner_all);
  AgentStart agents = start_;
  agents.channels = array.channels;
  try {
    array.submitting = started(array_command(cluster_, agents, static_cast<int>(array.tasks.size()),
                                             array.slots, script, own_),
                               array.channels / "submit.log");
  } catch (const std::system_error& error) {
    lose_all(array, {"scheduler", error.what()});
  }
}

void TaskArray::check_submission(Array& array, std::int64_t now_ms) {
  const auto exit = array.submitting->poll();
  if (!exit && now_ms - array.started_ms < kCommand_ms) return;
  const std::string output = text_of(array.channels / "submit.log");
  array.submitting.reset();
  array.asked_ms = now_ms;
  // With --parsable the output is "JOBID" or "JOBID;CLUSTER", after warnings if there are any.
  const std::size_t line = output.rfind('\n');
  const std::string last = line == output.npos ? output : output.substr(line + 1);
  const std::string job = last.substr(0, last.find(';'));
  if (exit == launcher::Exit{} && !job.empty() && job.find_first_not_of("0123456789") == job.npos) {
    array.job = job;
    log("array job " + job + ": " + std::to_string(array.tasks.size()) + " batches of " +
        std::to_string(array.slots) + " slots");
  } else {
    lose_all(array, {"scheduler", exit ? "sbatch refused the array: " + output
                                       : "sbatch did not answer in " +
                                             std::to_string(kCommand_ms / 1000) + " s: " + output});
  }
}

void TaskArray::hear(Array& array, bool look_at_live, std::int64_t now_ms) {
  for (std::size_t number = 0; number < array.tasks.size(); ++number) {
    auto& task = array.tasks[number];
    if (!task) continue;
    for (const std::string& line : task->reports.next()) {
      const record::Report report = record::report_from(
          record::parse_json(line, reports_file(task->channel)), reports_file(task->channel));
      task->heard = true;
      if (report.report == "leaving") {
        lose(array, number, {"preempted", "the agent left: " + report.why});
        break;
      }
      if (report.report == "doctor") log("doctor: " + report.why);
      if (report.report == "hello" || report.report == "doctor") continue;
      task->mailbox->reports.push_back(report);
      if (report.report != "over") continue;
      append_line(orders_file(task->channel), record::to_line({.order = "leave"}));
      leaving_.push_back({std::move(task->reports), now_ms});
      task.reset();
      break;
    }
    if (!task) continue;
    // No agent is there to obey, and one may still come hours later.
    if (task->mailbox->stop_asked && !task->heard) {
      cancel(array, number);
      lose(array, number, {"preempted", "the run was stopped before the task started"});
      continue;
    }
    std::error_code absent;
    if (!look_at_live || !task->heard || !fs::exists(live_file(task->channel), absent)) continue;
    const record::Live live =
        record::live_from(record::read_json(live_file(task->channel)), live_file(task->channel));
    if (live.updated_ms != task->live_updated_ms) {
      task->live_updated_ms = live.updated_ms;
      task->live_seen_ms = now_ms;
      if (!live.running.empty()) task->mailbox->live = live.running.front();
    } else if (now_ms - task->live_seen_ms > kAgentSilent_ms) {
      cancel(array, number);
      lose(array, number,
           {"node",
            "nothing was heard of the agent for " + std::to_string(kAgentSilent_ms / 1000) + " s"});
    }
  }
}

void TaskArray::ask_queue(Array& array, std::int64_t now_ms) {
  const fs::path file = array.channels / "queue.log";
  if (!array.asking) {
    if (now_ms - array.asked_ms < kQueue_ms) return;
    array.asked_ms = now_ms;
    array.asking =
        started({{"squeue", "--noheader", "--array", "--jobs=" + array.job, "--format=%i|%T|%r"},
                 launcher::without_outer_starter(own_)},
                file);
    return;
  }
  const auto exit = array.asking->poll();
  if (!exit && now_ms - array.asked_ms < kCommand_ms) return;
  const std::string output = text_of(file).empty() ? "" : record::read_text(file);
  array.asking.reset();
  // For a job that is over and forgotten the id is invalid. Any other failure says nothing about
  // it.
  const bool forgotten = exit && output.find("Invalid job id") != output.npos;
  if (!forgotten && exit != launcher::Exit{}) return;
  const QueuedTasks queue = forgotten ? QueuedTasks{} : read_queue(output);
  const auto among = [](const std::vector<int>& tasks, std::size_t number) {
    return std::find(tasks.begin(), tasks.end(), static_cast<int>(number)) != tasks.end();
  };
  for (std::size_t number = 0; number < array.tasks.size(); ++number) {
    auto& task = array.tasks[number];
    if (!task) continue;
    if (among(queue.held, number)) {
      cancel(array, number);
      lose(array, number,
           {"scheduler", "Slurm could not start the task and holds it (launch failed)"});
    } else if (among(queue.waiting, number) &&
               now_ms - array.started_ms > cluster_.queue_limit_ms) {
      cancel(array, number);
      lose(
          array, number,
          {"scheduler", "no node within " + std::to_string(cluster_.queue_limit_ms / 1000) + " s"});
    } else if (among(queue.running, number) && !task->heard && task->runs_ms != 0 &&
               now_ms - task->runs_ms > agent_start_ms_) {
      cancel(array, number);
      lose(array, number,
           {"node", "the task runs, and nothing was heard of its agent for " +
                        std::to_string(agent_start_ms_ / 1000) + " s"});
    } else if (among(queue.waiting, number) || among(queue.running, number)) {
      task->missed_ms = 0;
      if (among(queue.running, number) && task->runs_ms == 0) task->runs_ms = now_ms;
    } else if (task->missed_ms == 0) {
      task->missed_ms = now_ms;
    } else if (now_ms - task->missed_ms > kGone_ms) {
      lose(array, number,
           {"node",
            "the task is in no queue any more, and its agent did not report that it was leaving: " +
                text_of(array.channels / ("task-" + std::to_string(number) + ".log"))});
    }
  }
}

void TaskArray::cancel(const Array& array, std::size_t task) {
  cancelling_.emplace_back(launcher::Command{{"scancel", array.job + "_" + std::to_string(task)},
                                             launcher::without_outer_starter(own_)},
                           start_.run_folder / "pilots/cancel.log");
}

void TaskArray::lose(Array& array, std::size_t task, const record::Infra& why) {
  if (!array.tasks[task]) return;
  try {
    append_line(revoked_file(array.tasks[task]->channel), why.why + "\n");
  } catch (const record::WriteError&) {
    // The disk is full. The task is cancelled, or over.
  }
  array.tasks[task]->mailbox->lost = why;
  array.tasks[task].reset();
}

void TaskArray::lose_all(Array& array, const record::Infra& why) {
  log(why.why);
  for (std::size_t task = 0; task < array.tasks.size(); ++task) lose(array, task, why);
}

void TaskArray::check_leaving(std::int64_t now_ms) {
  std::erase_if(leaving_, [&](Leaving& agent) {
    for (const std::string& line : agent.reports.next())
      if (record::report_from(record::parse_json(line, "reports"), "reports").report == "leaving")
        return true;
    return now_ms - agent.ordered_ms > kLeave_ms;
  });
}

void TaskArray::release() {
  // A run that has ended leaves nothing on a node: its last agents report when they have removed
  // their folders.
  try {
    for (std::int64_t now_ms = launcher::steady_ms(); !leaving_.empty();
         now_ms = launcher::steady_ms()) {
      check_leaving(now_ms);
      std::this_thread::sleep_for(interval_);
    }
  } catch (const record::ReadError&) {
    // An agent whose reports can't be read is not waited for.
  }
  bool left = false;
  for (Array& array : arrays_) {
    for (const auto& task : array.tasks) left = left || task.has_value();
    lose_all(array, {"preempted", "the run has ended"});
  }
  arrays_.clear();
  if (!left) return;
  if (const std::string trouble = clear_queue(cancel_command(start_.run_id, own_), kClear_ms);
      !trouble.empty())
    log(trouble);
}

}  // namespace graphproof::cluster

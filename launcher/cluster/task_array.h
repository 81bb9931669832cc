// One array task a batch, for runs so large that no single allocation is large enough. Slurm packs
// the tasks; each has an agent with one batch, which communicates with the launcher as a pilot's
// does.
//
//   RUN/pilots/a1/                script, submit.log, task-N.log
//   RUN/pilots/a1/node-N/         orders.jsonl, reports.jsonl, live.json of task N
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "launcher/cluster/channel.h"
#include "launcher/cluster/commands.h"
#include "launcher/cluster/earlier_agents.h"
#include "launcher/cluster/remote_batch.h"
#include "launcher/host/child.h"
#include "launcher/run/allocation.h"

namespace graphproof::cluster {

/// The tasks of an array that are not over, by their numbers, as squeue (format "%i|%T|%r") lists
/// them. Tasks that wait are listed together ("17_[3-5,9%4]"). `held` are those that Slurm will
/// never start by itself: their state stays PENDING, with a reason such as "launch failed requeued
/// held".
struct QueuedTasks {
  std::vector<int> waiting, running, held;
};
QueuedTasks read_queue(const std::string& text);

/// The arrays that were submitted, and the agents of their tasks.
class TaskArray final : public launcher::Allocation {
 public:
  // Slurm's default MaxArraySize is 1001.
  static constexpr int kTasks = 1000;
  // Batches that the run loop starts in one round become one array, which is submitted when none
  // was added for this long.
  static constexpr std::int64_t kCollect_ms = 100;
  // How often squeue is run: it asks the controller, which all users share.
  static constexpr std::int64_t kQueue_ms = 5000;
  // A Slurm command that has not answered by now is run again: the controller may be away for a
  // while.
  static constexpr std::int64_t kCommand_ms = 30000;
  // A task that is in no queue has ended. After this time its agent's reports are visible on a
  // shared file system too.
  static constexpr std::int64_t kGone_ms = 10000;
  // As for a pilot: agents write once a second.
  static constexpr std::int64_t kAgentSilent_ms = 90000;
  // The time from a task's start to its agent's first report: the image of a container may have to
  // be fetched.
  static constexpr std::int64_t kAgentStart_ms = 15 * 60 * 1000;
  // An agent that was ordered to leave has nothing left to end but itself.
  static constexpr std::int64_t kLeave_ms = 30000;

  TaskArray(record::Cluster cluster, AgentStart start, launcher::Environment own,
            std::int64_t agent_start_ms = kAgentStart_ms);
  ~TaskArray() override;

  void step(std::int64_t now_ms) override;
  bool ready() const override { return ready_; }
  std::unique_ptr<launcher::RunningBatch> start(launcher::BatchRequest request,
                                                const std::vector<launcher::Slot>& slots,
                                                std::int64_t now_ms) override;
  void release() override;
  int nodes() const override { return kTasks; }
  std::vector<int> children() const override;

 private:
  /// A task, as its agent and the queue show it.
  struct Task {
    std::filesystem::path channel;
    LineReader reports;
    std::shared_ptr<Mailbox> mailbox;
    bool heard = false;
    std::int64_t missed_ms = 0, runs_ms = 0;  // since when no queue has it, since when it runs
    std::int64_t live_updated_ms = 0, live_seen_ms = 0;
  };
  /// A submitted array of tasks with the same number of slots.
  struct Array {
    std::filesystem::path channels;
    int slots = 1;
    std::vector<std::optional<Task>> tasks;  // nothing: the task is over
    std::string job;                         // "" until sbatch has printed it
    std::unique_ptr<launcher::Child> submitting, asking;
    std::int64_t started_ms = 0, asked_ms = 0, grown_ms = 0;
    bool closed = false;  // no task is added any more
  };

  /// An agent whose batch is over and that was ordered to leave.
  struct Leaving {
    LineReader reports;
    std::int64_t ordered_ms = 0;
  };

  void submit(Array& array, std::int64_t now_ms);
  void check_submission(Array& array, std::int64_t now_ms);
  void ask_queue(Array& array, std::int64_t now_ms);
  void hear(Array& array, bool look_at_live, std::int64_t now_ms);
  void cancel(const Array& array, std::size_t task);
  void lose(Array& array, std::size_t task, const record::Infra& why);
  void lose_all(Array& array, const record::Infra& why);
  void check_leaving(std::int64_t now_ms);

  const record::Cluster cluster_;
  const AgentStart start_;
  const launcher::Environment own_;
  const std::int64_t agent_start_ms_;
  const std::chrono::milliseconds interval_;
  std::list<Array> arrays_;
  std::list<Leaving> leaving_;
  std::optional<EarlierAgents> earlier_;
  std::list<launcher::Child> cancelling_;
  bool ready_ = false;
  int number_ = 0;
  std::int64_t since_ms_ = 0, looked_ms_ = 0, live_ms_ = 0;
};

}  // namespace graphproof::cluster

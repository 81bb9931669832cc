// One allocation for a whole run: a command (salloc with srun below it, or mpirun over named hosts)
// brings an agent to each node and lives as long as they do. When it ends, or an agent falls
// silent, the allocation is lost: cases that were running end infra.*, and the command is started
// again, a bounded number of times.
//
//   RUN/pilots/p1/starter.log     what the command printed
//   RUN/pilots/p1/node-0/         orders.jsonl, reports.jsonl, live.json
//   RUN/pilots/p1/revoked         its agents must leave; written before their work runs elsewhere
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "launcher/cluster/channel.h"
#include "launcher/cluster/earlier_agents.h"
#include "launcher/cluster/remote_batch.h"
#include "launcher/host/child.h"
#include "launcher/run/allocation.h"

namespace graphproof::cluster {

/// What a pilot needs before it asks for nodes.
struct PilotSetup {
  std::filesystem::path run_folder;
  int nodes = 1, slots = 1;  // slots of a node
  /// The command that brings the agents; their channels are below the folder that it is given.
  std::function<launcher::Command(const std::filesystem::path& channels)> command;
  std::optional<launcher::Command> cancel;  // ends what the command may have left in a queue
  std::int64_t queue_limit_ms =
      24 * 3600 * 1000ll;  // the command waits for nodes no longer than this
  std::string
      granted;  // what the command prints when it has the nodes; "": it has them from the start
  // The time from there to an agent's first report: the image of a container may have to be
  // fetched.
  std::int64_t agent_start_ms = 15 * 60 * 1000;
  // Agents write once a second; a shared file system may show an old file for a minute.
  std::int64_t agent_silent_ms = 90000;
};

/// The notice about a node whose clock differs from this host's; "" where they agree as far as can
/// be told. A node reports once a second, and a shared file system may show its report a minute
/// late, so a clock that is behind is harder to see.
std::string clock_trouble(const std::string& node, std::int64_t own_utc_ms,
                          std::int64_t node_utc_ms);

/// The state of the allocation, and its agents.
class Pilot final : public launcher::Allocation {
 public:
  // After this many losses in a row without a case in between, nothing can run there.
  static constexpr int kFruitless = 3;
  // The time between two starts: a passing problem may be over by then.
  static constexpr std::int64_t kAgain_ms = 2000;
  // Agents first end their ranks, for which mpirun needs a second or two; a scheduler then clears
  // the nodes.
  static constexpr std::int64_t kLeave_ms = 30000;

  explicit Pilot(PilotSetup setup);
  ~Pilot() override;

  void step(std::int64_t now_ms) override;
  bool ready() const override { return stage_ == Stage::ready || stage_ == Stage::given_up; }
  std::unique_ptr<launcher::RunningBatch> start(launcher::BatchRequest request,
                                                const std::vector<launcher::Slot>& slots,
                                                std::int64_t now_ms) override;
  bool can_prestart() const override { return stage_ == Stage::ready; }
  void release() override;
  int nodes() const override { return setup_.nodes; }
  std::vector<int> children() const override;

 private:
  enum class Stage { clearing, waiting, asking, ready, ending, given_up };
  /// A node of the allocation, as its agent reports it.
  struct Node {
    std::filesystem::path channel;
    LineReader reports;
    bool hello = false, left = false;
    std::string name;
    std::int64_t heard_ms = 0, live_updated_ms = 0;
    bool clock_reported = false;
    std::map<std::string, std::shared_ptr<Mailbox>> batches;
  };

  void clear(std::int64_t now_ms);
  void ask(std::int64_t now_ms);
  void hear(Node& node, std::int64_t now_ms);
  void look_at_live(Node& node, std::int64_t now_ms);
  void watch(std::int64_t now_ms);
  void lose(const record::Infra& why, std::int64_t now_ms);
  void end(std::int64_t now_ms);
  void cancel();
  void end_command();
  /// Kills whatever the command started on this host: an srun whose node is out of reach outlives
  /// its salloc.
  void kill_command() const;
  std::filesystem::path channels() const;
  std::string starter_text() const;
  std::string starter_log() const;
  /// One round while the command has not brought all agents.
  void wait_for_agents(std::int64_t now_ms);

  const PilotSetup setup_;
  Stage stage_ = Stage::clearing;
  int number_ = 0, fruitless_ = 0;
  std::optional<EarlierAgents> earlier_;
  std::vector<Node> nodes_;
  std::unique_ptr<launcher::Child> child_, canceller_;
  std::chrono::milliseconds interval_;
  std::int64_t since_ms_ = 0, granted_ms_ = 0, looked_ms_ = 0, live_ms_ = 0;
  bool waiting_reported_ = false, released_ = false;
  record::Infra gave_up_;
};

}  // namespace graphproof::cluster

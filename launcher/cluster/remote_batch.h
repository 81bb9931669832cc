// A batch on a node whose agent reports: its reports are put into a mailbox, and come out as
// contexts.
#pragma once

#include <deque>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "launcher/batch/batch_request.h"
#include "launcher/batch/running_batch.h"
#include "reports/record/job/agent.h"

namespace graphproof::cluster {

/// What has been reported of one batch. The allocation fills it when it reads the agent's files.
struct Mailbox {
  std::deque<record::Report> reports;    // of this batch
  std::optional<record::LiveCase> live;  // the last one that was read
  std::optional<record::Infra> lost;     // its node is gone, and why
  bool stop_asked =
      false;  // the launcher gave the batch up; an agent that never came does not know it
};

/// The order that starts a request on `slots` of a node, or prestarts it there.
record::Order start_order(const launcher::BatchRequest& request, std::vector<int> slots);

/// One batch that an agent runs.
class RemoteBatch final : public launcher::RunningBatch {
 public:
  /// Writes nothing by itself: start_order() must be in the file. `orders`: the file that the agent
  /// reads.
  RemoteBatch(launcher::BatchRequest request, std::filesystem::path orders,
              std::shared_ptr<Mailbox> mailbox);

  std::vector<record::Context> step(std::int64_t now_ms) override;
  bool over() const override { return over_; }
  std::vector<launcher::Attempt> not_done() const override;
  std::vector<std::string> unkillable() const override { return unkillable_; }
  void stop(std::int64_t now_ms) override;
  void stop_after_case() override;
  void begin() override;
  bool prestart_failed() const override { return prestart_failed_; }
  const record::Batch& batch() const override { return request_.batch; }
  int starter_pid() const override { return 0; }
  std::string now_doing() const override;
  record::LiveCase live(std::int64_t now_ms) const override;

 private:
  void ended(std::size_t index, std::vector<record::Context>& finished);
  void over(const record::Report& report);
  void node_lost(const record::Infra& why, std::vector<record::Context>& finished);
  /// The next attempt at a case. It has a folder of its own, because a node out of reach may still
  /// write into the old one.
  launcher::Attempt next_attempt(std::size_t index, const std::string& why) const;
  std::filesystem::path attempt(std::size_t index) const;

  const launcher::BatchRequest request_;
  const std::filesystem::path orders_;
  const std::shared_ptr<Mailbox> mailbox_;
  std::vector<bool> finished_;
  std::vector<launcher::Attempt> not_done_;
  std::vector<std::string> unkillable_;
  bool over_ = false, stopped_ = false, stopping_ = false, prestarted_ = false,
       prestart_failed_ = false;
};

}  // namespace graphproof::cluster

#include "launcher/cluster/remote_batch.h"

#include <algorithm>
#include <system_error>
#include <utility>

#include "launcher/batch/attempt_folder.h"
#include "launcher/cluster/channel.h"
#include "reports/record/text/file.h"
#include "reports/record/text/message.h"

namespace graphproof::cluster {

namespace fs = std::filesystem;

record::Order start_order(const launcher::BatchRequest& request, std::vector<int> slots) {
  record::Order order{.order = request.prestarted ? "hold" : "start",
                      .batch = request.batch.batch,
                      .isolation = request.batch.isolation,
                      .slots = std::move(slots),
                      .cases = {},
                      .predecessor = request.predecessor};
  for (const launcher::Attempt& attempt : request.attempts)
    order.cases.push_back({attempt.line.id, attempt.number, attempt.again});
  return order;
}

RemoteBatch::RemoteBatch(launcher::BatchRequest request, fs::path orders,
                         std::shared_ptr<Mailbox> mailbox)
    : request_(std::move(request)),
      orders_(std::move(orders)),
      mailbox_(std::move(mailbox)),
      finished_(request_.attempts.size()),
      prestarted_(request_.prestarted) {}

fs::path RemoteBatch::attempt(std::size_t index) const {
  const launcher::Attempt& one = request_.attempts[index];
  return request_.run_folder / launcher::attempt_folder(one.line.id, one.number);
}

std::vector<record::Context> RemoteBatch::step(std::int64_t) {
  std::vector<record::Context> finished;
  while (!mailbox_->reports.empty() && !over_) {
    const record::Report report = std::move(mailbox_->reports.front());
    mailbox_->reports.pop_front();
    if (report.report == "over") {
      over(report);
      continue;
    }
    if (report.report == "lost") {
      prestart_failed_ = true;
      continue;
    }
    for (std::size_t i = 0; i < finished_.size(); ++i)
      if (request_.attempts[i].line.id == report.case_id &&
          request_.attempts[i].number == report.attempt && !finished_[i])
        ended(i, finished);
  }
  if (!over_ && mailbox_->lost) node_lost(*mailbox_->lost, finished);
  return finished;
}

void RemoteBatch::ended(std::size_t index, std::vector<record::Context>& finished) {
  const fs::path file = attempt(index) / "context.json";
  finished.push_back(record::context_from(record::read_json(file), file));
  finished_[index] = true;
}

void RemoteBatch::over(const record::Report& report) {
  over_ = true;
  unkillable_ = report.unkillable;
  for (std::size_t i = 0; i < finished_.size(); ++i)
    if (!finished_[i]) not_done_.push_back(request_.attempts[i]);
}

launcher::Attempt RemoteBatch::next_attempt(std::size_t index, const std::string& why) const {
  launcher::Attempt next = request_.attempts[index];
  next.again = "attempt " + std::to_string(next.number) + " was given to a node " + why;
  ++next.number;
  return next;
}

std::vector<launcher::Attempt> RemoteBatch::not_done() const {
  if (!prestarted_ && !prestart_failed_) return not_done_;
  std::vector<launcher::Attempt> all;
  for (std::size_t i = 0; i < finished_.size(); ++i)
    all.push_back(next_attempt(i, "before its turn, and did not begin"));
  return all;
}

void RemoteBatch::node_lost(const record::Infra& why, std::vector<record::Context>& finished) {
  over_ = true;
  if (prestarted_ || prestart_failed_) return;
  std::error_code absent;
  for (std::size_t i = 0; i < finished_.size(); ++i)
    if (!finished_[i] && fs::exists(attempt(i) / "context.json", absent)) ended(i, finished);
  bool progress = false;
  for (std::size_t i = 0; i < finished_.size(); ++i)
    progress = progress || finished_[i] || launcher::was_begun(attempt(i));
  for (std::size_t i = 0; i < finished_.size(); ++i) {
    if (finished_[i]) continue;
    // A batch without progress may never make any. So its cases end with this verdict and get one
    // more attempt.
    if ((launcher::was_begun(attempt(i)) || !progress) && !mailbox_->stop_asked) {
      finished_[i] = true;
      finished.push_back(launcher::context_of(request_, i));
      finished.back().ended = "died";
      finished.back().infra = why;
      continue;
    }
    not_done_.push_back(next_attempt(i, "that was lost: " + why.why));
  }
}

void RemoteBatch::stop(std::int64_t) {
  if (stopped_ || over_) return;
  stopped_ = mailbox_->stop_asked = true;
  append_line(orders_, record::to_line({.order = "stop", .batch = request_.batch.batch}));
}

void RemoteBatch::stop_after_case() {
  if (stopping_ || over_) return;
  stopping_ = mailbox_->stop_asked = true;
  append_line(orders_,
              record::to_line({.order = "stop_after_case", .batch = request_.batch.batch}));
}

void RemoteBatch::begin() {
  prestarted_ = false;
  append_line(orders_, record::to_line({.order = "go", .batch = request_.batch.batch}));
}

std::string RemoteBatch::now_doing() const {
  const record::LiveCase now = live(0);
  return now.name +
         (now.ranks.front().phase ? " " + std::string(record::name(*now.ranks.front().phase)) : "");
}

record::LiveCase RemoteBatch::live(std::int64_t) const {
  if (mailbox_->live) return *mailbox_->live;
  const launcher::Attempt& first = request_.attempts.front();
  record::LiveCase live{.case_id = first.line.id,
                        .name = first.line.name,
                        .attempt = first.number,
                        .batch = request_.batch.batch,
                        .ranks = {}};
  for (int rank = 0; rank < request_.batch.world_size; ++rank) live.ranks.push_back({.rank = rank});
  return live;
}

}  // namespace graphproof::cluster

#include "suites/checks/watched/job/watched_judgement.h"

#include <algorithm>

#include "suites/checks/attempt/concat.h"

namespace graphproof::checks::watched {

WatchedJudgement::WatchedJudgement(std::string_view check, const WatchedJob& job,
                                   const std::vector<std::string>& needs)
    : check_(check), job_(job), needs_(needs) {}

void WatchedJudgement::defect(const JobProcess& process, Finding finding) {
  if (!defect_) {
    defect_ = std::move(finding);
    of_ = &process;
  }
  ++defects_;
}

void WatchedJudgement::defect(Finding finding) {
  if (!defect_) defect_ = std::move(finding);
  ++defects_;
}

void WatchedJudgement::unexercised(std::string reason) {
  if (!unexercised_) unexercised_ = std::move(reason);
}

void WatchedJudgement::excuse(const JobProcess& process, std::string reason) {
  excused_.insert(&process);
  if (!excuse_) excuse_ = concat(process.title(), ": ", reason);
}

void WatchedJudgement::not_applicable(std::string reason) {
  if (!not_applicable_) not_applicable_ = std::move(reason);
}

std::vector<const JobProcess*> WatchedJudgement::all_ranks() {
  std::vector<const JobProcess*> found = ranks(job_);
  std::int64_t wanted = static_cast<std::int64_t>(found.size());
  bool graphs = false;
  for (const JobProcess& process : job_.processes) {
    graphs |= process.has_graphs();
    wanted = std::max(wanted, process.line().world_size.value_or(1));
  }
  if (wanted > static_cast<std::int64_t>(found.size()) && wanted > 1)
    unexercised(concat("evidence of ", found.size(), " of ", wanted, " ranks"));
  else if (found.size() < 2 && graphs)
    not_applicable("the job is one process");
  return found;
}

void WatchedJudgement::confirm(const JobProcess& process) { confirmed_.insert(&process); }

record::CheckResult WatchedJudgement::failed() const {
  record::CheckResult result{.check = check_, .result = record::Result::fail, .rank = {}};
  std::string where;
  if (of_) {
    where = concat(of_->title(), ": ");
    if (of_->line().rank) result.rank = static_cast<int>(*of_->line().rank);
  }
  result.message = {.what = concat(where, defect_->what),
                    .got = defect_->got,
                    .want = defect_->want,
                    .why = defect_->why,
                    .next = defect_->next};
  if (defects_ > 1) result.message.got += concat("; ", defects_ - 1, " more of this kind");
  return result;
}

std::optional<std::string> WatchedJudgement::missing() const {
  if (!job_.unread.empty()) return job_.unread.front();
  bool graphs = false;
  for (const JobProcess& process : job_.processes) {
    // What was not seen of a process may be its graphs.
    if (const auto unseen = process.unseen("everything"))
      return concat(process.title(), " was not seen: ", *unseen);
    if (const auto unseen = process.calls_unseen();
        unseen && std::ranges::find(needs_, "driver_calls") != needs_.end())
      return concat(process.title(), " was not seen whole: driver_calls: ", *unseen);
    if (!process.has_graphs()) continue;
    graphs = true;
    for (const std::string& part : needs_)
      if (const auto unseen = process.unseen(part))
        return concat(process.title(), " was not seen whole: ", *unseen);
  }
  if (const std::string rank = rank_lost_early(job_); !rank.empty())
    return concat(rank, " was ended before it made a graph, as other ranks did");
  if (unexercised_) return unexercised_;
  if (!graphs) return "no process captured or instantiated a graph";
  for (const JobProcess& process : job_.processes)
    if (process.has_graphs() && !confirmed_.contains(&process) && !excused_.contains(&process))
      return concat(process.title(), " left nothing that this check reads");
  if (confirmed_.empty()) return excuse_.value_or("no process has what this check reads");
  return std::nullopt;
}

record::CheckResult WatchedJudgement::result(std::string summary, std::string want) {
  if (defect_) return failed();
  if (not_applicable_ && job_.unread.empty())
    return {.check = check_,
            .result = record::Result::not_applicable,
            .rank = {},
            .message = {.what = "",
                        .got = "nothing to judge",
                        .want = std::move(want),
                        .why = std::move(*not_applicable_),
                        .next = "nothing to do"}};
  if (std::optional<std::string> reason = missing())
    return {.check = check_,
            .result = record::Result::unexercised,
            .rank = {},
            .message = {.what = "",
                        .got = std::move(*reason),
                        .want = std::move(want),
                        .why = "a check without evidence neither passes nor fails",
                        .next = "docs/reference/checks.md says what this check needs to see"}};
  return {
      .check = check_,
      .result = record::Result::pass,
      .rank = {},
      .message = {
          .what = "", .got = std::move(summary), .want = std::move(want), .why = "", .next = ""}};
}

}  // namespace graphproof::checks::watched

#include "launcher/batch/between_cases.h"

#include <algorithm>
#include <utility>

namespace graphproof::launcher {

std::vector<BetweenCases::Finished> BetweenCases::step(const std::vector<std::size_t>& ended,
                                                       const std::vector<int>& rank_pids,
                                                       std::int64_t now_ms) {
  if (ended.empty()) return {};
  if (!suspicion_) {
    if (now_ms - looked_ms_ < kLook_ms) return {};
    looked_ms_ = now_ms;
    suspicion_ = Suspicion{ended.back(), now_ms, leftovers_.between_cases(rank_pids)};
  }
  const record::Cleanup nothing;
  const record::Cleanup still =
      suspicion_->found == nothing ? nothing : leftovers_.still_there(suspicion_->found);
  if (still != nothing && now_ms - suspicion_->since_ms < kGrace_ms) return {};
  leftovers_.report(still);
  std::vector<Finished> finished;
  for (const std::size_t index : ended) {
    const bool suspected = index == suspicion_->case_index;
    finished.push_back({index, suspected ? still : nothing});
    if (suspected) break;  // those that have ended since then get a look of their own
  }
  suspicion_.reset();
  return finished;
}

std::vector<BetweenCases::Finished> BetweenCases::finish(
    const std::vector<std::size_t>& ended, const std::vector<std::string>& left_behind) {
  std::vector<Finished> finished;
  for (const std::size_t index : ended) {
    record::Cleanup still;
    if (suspicion_ && suspicion_->case_index == index) {
      const std::vector<std::string>& found = suspicion_->found.processes;
      still = leftovers_.still_there(suspicion_->found);
      for (const std::string& process : left_behind)
        if (std::find(found.begin(), found.end(), process) != found.end())
          still.processes.push_back(process);
      leftovers_.report(still);
    }
    finished.push_back({index, std::move(still)});
  }
  return finished;
}

}  // namespace graphproof::launcher

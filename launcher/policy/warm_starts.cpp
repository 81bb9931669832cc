#include "launcher/policy/warm_starts.h"

#include <utility>

namespace graphproof::launcher {

void WarmStarts::add(const std::string& name, Batch batch) { waiting_[name] = std::move(batch); }

WarmStarts::Batch WarmStarts::take(const std::string& name) {
  auto found = waiting_.extract(name);
  return found ? std::move(found.mapped()) : nullptr;
}

void WarmStarts::give_up(Batch batch, std::int64_t now_ms) {
  batch->stop(now_ms);
  given_up_.push_back(std::move(batch));
}

void WarmStarts::give_up_all(std::int64_t now_ms) {
  for (auto& [name, batch] : std::exchange(waiting_, {})) give_up(std::move(batch), now_ms);
}

std::vector<std::pair<std::string, WarmStarts::Batch>> WarmStarts::step(
    std::int64_t now_ms, const std::function<bool(const std::string&)>& has_place) {
  for (const auto& [name, batch] : waiting_) batch->step(now_ms);
  std::vector<std::pair<std::string, Batch>> misplaced;
  for (const auto& [name, batch] : waiting_)
    if (!has_place(name) || batch->over()) misplaced.emplace_back(name, batch);
  for (const auto& [name, batch] : misplaced) {
    waiting_.erase(name);
    give_up(batch, now_ms);
  }
  for (const Batch& batch : given_up_) batch->step(now_ms);
  std::erase_if(given_up_, [](const Batch& batch) { return batch->over(); });
  return misplaced;
}

std::vector<int> WarmStarts::starter_pids() const {
  std::vector<int> pids;
  for (const auto& [name, batch] : waiting_) pids.push_back(batch->starter_pid());
  for (const Batch& batch : given_up_) pids.push_back(batch->starter_pid());
  return pids;
}

std::list<WarmStarts::Batch> WarmStarts::end_all(std::int64_t now_ms) {
  give_up_all(now_ms);
  return std::exchange(given_up_, {});
}

void WarmStarts::clear() {
  waiting_.clear();
  given_up_.clear();
}

}  // namespace graphproof::launcher

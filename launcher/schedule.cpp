#include "launcher/schedule.h"

#include <algorithm>
#include <cassert>
#include <numeric>

namespace graphproof::launcher {

Schedule::Schedule(int slot_count) : slot_count_(slot_count), free_(slot_count) {
  assert(slot_count >= 1);
  std::iota(free_.begin(), free_.end(), 0);
}

void Schedule::add(const Queued& queued) {
  assert(queued.slots >= 1 && queued.slots <= slot_count_);
  const auto shorter = std::find_if(waiting_.begin(), waiting_.end(), [&](const Waiting& other) {
    return other.queued.expected_seconds < queued.expected_seconds;
  });
  waiting_.insert(shorter, Waiting{queued});
}

std::vector<Start> Schedule::start() {
  std::vector<Start> starts;
  std::vector<Waiting*> passed;
  for (auto next = waiting_.begin(); next != waiting_.end();) {
    if (next->queued.slots > static_cast<int>(free_.size())) {
      if (next->passed_over >= kPassedOver) break;
      passed.push_back(&*next);
      ++next;
      continue;
    }
    for (Waiting* waiting : passed) ++waiting->passed_over;
    const auto leased_end = free_.begin() + next->queued.slots;
    starts.push_back({next->queued.batch, {free_.begin(), leased_end}});
    free_.erase(free_.begin(), leased_end);
    running_.push_back(starts.back());
    // Erasing moves only what follows, so the pointers to those passed over stay good.
    next = waiting_.erase(next);
  }
  return starts;
}

std::vector<Start>::iterator Schedule::running(const std::string& batch) {
  const auto found = std::find_if(running_.begin(), running_.end(), [&](const Start& start) { return start.batch == batch; });
  assert(found != running_.end());
  return found;
}

void Schedule::release(const std::string& batch) {
  const auto ended = running(batch);
  free_.insert(free_.end(), ended->slots.begin(), ended->slots.end());
  std::sort(free_.begin(), free_.end());
  running_.erase(ended);
}

void Schedule::quarantine(const std::string& batch) {
  const auto ended = running(batch);
  quarantined_.insert(quarantined_.end(), ended->slots.begin(), ended->slots.end());
  std::sort(quarantined_.begin(), quarantined_.end());
  running_.erase(ended);
}

std::vector<std::string> Schedule::drop_unfit() {
  const int usable = slot_count_ - static_cast<int>(quarantined_.size());
  std::vector<std::string> dropped;
  std::erase_if(waiting_, [&](const Waiting& waiting) {
    if (waiting.queued.slots <= usable) return false;
    dropped.push_back(waiting.queued.batch);
    return true;
  });
  return dropped;
}

std::vector<std::string> Schedule::drop_waiting() {
  std::vector<std::string> dropped;
  for (const Waiting& waiting : waiting_) dropped.push_back(waiting.queued.batch);
  waiting_.clear();
  return dropped;
}

double Schedule::waiting_slot_seconds() const {
  return std::accumulate(waiting_.begin(), waiting_.end(), 0.0, [](double sum, const Waiting& waiting) {
    return sum + waiting.queued.expected_seconds * waiting.queued.slots;
  });
}

}  // namespace graphproof::launcher

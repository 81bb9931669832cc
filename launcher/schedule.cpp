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

void Schedule::release(const std::string& batch) {
  const auto ended = std::find_if(running_.begin(), running_.end(),
                                  [&](const Start& start) { return start.batch == batch; });
  assert(ended != running_.end());
  free_.insert(free_.end(), ended->slots.begin(), ended->slots.end());
  std::sort(free_.begin(), free_.end());
  running_.erase(ended);
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

#include "launcher/policy/schedule.h"

#include <algorithm>
#include <cassert>
#include <numeric>
#include <set>
#include <utility>

namespace graphproof::launcher {
namespace {

/// The free slots of one island, and how many of it are usable at all.
struct Island {
  int node = 0, usable = 0;
  std::vector<Slot> free;
};

std::vector<Slot> first(std::vector<Slot> slots, std::size_t count) {
  slots.resize(count);
  return slots;
}

/// An exclusive batch goes first: while nothing has started, it need not wait for another's end.
bool goes_before(const Queued& left, const Queued& right) {
  if (left.exclusive != right.exclusive) return left.exclusive;
  if (left.slots != right.slots) return left.slots > right.slots;
  return left.expected_seconds > right.expected_seconds;
}

std::vector<Place> nodes(int slot_count, int node_slots) {
  assert(node_slots >= 1 && slot_count % node_slots == 0);
  std::vector<Place> places;
  for (int slot = 0; slot < slot_count; ++slot)
    places.push_back({slot / node_slots, slot / node_slots});
  return places;
}

std::int64_t expected_ms(const Queued& queued) {
  return static_cast<std::int64_t>(queued.expected_seconds * 1000);
}

}  // namespace

Schedule::Schedule(int slot_count, int node_slots)
    : Schedule(nodes(slot_count, node_slots), false) {}

Schedule::Schedule(std::vector<Place> places, bool across_nodes)
    : places_(std::move(places)),
      across_nodes_(across_nodes),
      gpu_count_(static_cast<int>(places_.size())),
      free_(places_.size(), true),
      withdrawn_(places_.size()),
      strikes_(places_.size()) {
  assert(!places_.empty());
  for (const Place& place : places_) island_count_ = std::max(island_count_, place.island + 1);
}

Schedule Schedule::of_shared_gpus(const std::vector<Place>& gpus, int slots_per_gpu) {
  int islands = 0;
  for (const Place& gpu : gpus) islands = std::max(islands, gpu.island + 1);
  // One slot of each GPU makes up a node, so the slots of a batch are on different GPUs.
  std::vector<Place> places;
  for (int node = 0; node < slots_per_gpu; ++node)
    for (const Place& gpu : gpus) places.push_back({node * islands + gpu.island, node});
  Schedule schedule(std::move(places), false);
  schedule.gpu_count_ = static_cast<int>(gpus.size());
  return schedule;
}

void Schedule::add(const Queued& queued) {
  assert(queued.slots >= 1 && fits(queued.slots, Flags(places_.size(), true)));
  const auto next = std::find_if(waiting_.begin(), waiting_.end(), [&](const Waiting& other) {
    return goes_before(queued, other.queued);
  });
  waiting_.insert(next, Waiting{queued, 0, {}});
}

int Schedule::count(const Flags& flags) const {
  return static_cast<int>(std::count(flags.begin(), flags.end(), true));
}

std::vector<Slot> Schedule::of_same_gpus(const std::vector<Slot>& slots) const {
  std::set<Slot> all;
  for (const Slot slot : slots)
    for (Slot same = gpu_of(slot); same < slot_count(); same += gpu_count_) all.insert(same);
  return {all.begin(), all.end()};
}

bool Schedule::fits(int slots, const Flags& usable) const {
  if (across_nodes_ || slots > gpu_count_) return count(usable) >= slots;
  std::vector<int> usable_on(places_.size());
  for (std::size_t slot = 0; slot < places_.size(); ++slot)
    usable_on[static_cast<std::size_t>(places_[slot].node)] += usable[slot];
  return *std::max_element(usable_on.begin(), usable_on.end()) >= slots;
}

std::optional<std::vector<Slot>> Schedule::place(const Queued& queued, const Flags& free) const {
  if (queued.exclusive && !running_.empty()) return std::nullopt;
  Flags usable = withdrawn_;
  usable.flip();
  if (!queued.avoided.empty()) {
    Flags elsewhere = usable, free_elsewhere = free;
    for (const Slot slot : of_same_gpus(queued.avoided))
      elsewhere[static_cast<std::size_t>(slot)] = free_elsewhere[static_cast<std::size_t>(slot)] =
          false;
    if (fits(queued.slots, elsewhere)) return place_within(queued.slots, free_elsewhere, elsewhere);
  }
  return place_within(queued.slots, free, usable);
}

std::optional<std::vector<Slot>> Schedule::place_within(int slots, const Flags& free,
                                                        const Flags& usable) const {
  std::vector<Island> islands(static_cast<std::size_t>(island_count_));
  for (std::size_t slot = 0; slot < places_.size(); ++slot) {
    Island& island = islands[static_cast<std::size_t>(places_[slot].island)];
    island.node = places_[slot].node;
    island.usable += usable[slot];
    if (free[slot]) island.free.push_back(static_cast<Slot>(slot));
  }
  const auto wanted = static_cast<std::size_t>(slots);
  // The island that is left with the fewest free slots: larger gaps stay for larger batches.
  const bool fits_one = std::any_of(islands.begin(), islands.end(),
                                    [&](const Island& island) { return island.usable >= slots; });
  if (fits_one) {
    const Island* best = nullptr;
    for (const Island& island : islands)
      if (island.free.size() >= wanted &&
          (best == nullptr || island.free.size() < best->free.size()))
        best = &island;
    return best ? std::optional(first(best->free, wanted)) : std::nullopt;
  }
  // As few islands as the usable slots allow, of one node where one is large enough.
  std::vector<int> usable_on(places_.size());
  for (const Island& island : islands)
    usable_on[static_cast<std::size_t>(island.node)] += island.usable;
  const bool fits_node = *std::max_element(usable_on.begin(), usable_on.end()) >= slots;
  const auto fewest = [slots](std::vector<int> sizes) {
    std::sort(sizes.rbegin(), sizes.rend());
    int islands_needed = 0;
    for (int left = slots; left > 0 && islands_needed < static_cast<int>(sizes.size());
         ++islands_needed)
      left -= sizes[static_cast<std::size_t>(islands_needed)];
    return islands_needed;
  };
  for (std::size_t node = 0; node < (fits_node ? places_.size() : 1); ++node) {
    std::vector<const Island*> candidates;
    std::vector<int> sizes;
    for (const Island& island : islands) {
      if (fits_node && static_cast<std::size_t>(island.node) != node) continue;
      candidates.push_back(&island);
      sizes.push_back(island.usable);
    }
    if (std::accumulate(sizes.begin(), sizes.end(), 0) < slots) continue;
    std::stable_sort(candidates.begin(), candidates.end(),
                     [](const Island* left, const Island* right) {
                       return left->free.size() > right->free.size();
                     });
    std::vector<Slot> chosen;
    int used = 0;
    for (const Island* island : candidates) {
      const std::size_t left = wanted - chosen.size();
      if (left == 0 || island->free.empty()) break;
      // The last part goes where the gap is tightest.
      const Island* part = island;
      for (const Island* other : candidates)
        if (other->free.size() >= left && other->free.size() < part->free.size() &&
            part->free.size() >= left)
          part = other;
      chosen.insert(
          chosen.end(), part->free.begin(),
          part->free.begin() + static_cast<std::ptrdiff_t>(std::min(left, part->free.size())));
      ++used;
    }
    if (chosen.size() < wanted || used > fewest(sizes)) continue;
    std::sort(chosen.begin(), chosen.end());
    return chosen;
  }
  return std::nullopt;
}

Schedule::Reservation Schedule::reserve(const Queued& queued, Flags free,
                                        std::int64_t now_ms) const {
  std::vector<const Running*> by_end;
  for (const Running& running : running_) by_end.push_back(&running);
  std::sort(by_end.begin(), by_end.end(), [](const Running* left, const Running* right) {
    return left->expected_end_ms < right->expected_end_ms;
  });
  Queued alone = queued;
  alone.exclusive = false;  // the question here is when all others have ended
  Reservation reservation{now_ms, Flags(places_.size(), queued.exclusive)};
  for (const Running* running : by_end) {
    for (const Slot slot : running->slots)
      free[static_cast<std::size_t>(slot)] = !withdrawn_[static_cast<std::size_t>(slot)];
    reservation.at_ms = std::max(now_ms, running->expected_end_ms);
    if (queued.exclusive && running != by_end.back()) continue;
    if (const auto slots = place(alone, free)) {
      for (const Slot slot : *slots) reservation.slots[static_cast<std::size_t>(slot)] = true;
      return reservation;
    }
  }
  reservation.slots.assign(places_.size(), true);
  return reservation;
}

std::optional<std::vector<Slot>> Schedule::may_start(const Waiting& waiting,
                                                     const std::optional<Reservation>& reservation,
                                                     std::int64_t now_ms) const {
  const bool nothing_beside =
      std::any_of(running_.begin(), running_.end(),
                  [](const Running& running) { return running.queued.exclusive; });
  if (nothing_beside) return std::nullopt;
  if (!reservation || now_ms + expected_ms(waiting.queued) <= reservation->at_ms)
    return place(waiting.queued, free_);
  Flags left = free_;
  for (std::size_t slot = 0; slot < left.size(); ++slot)
    left[slot] = left[slot] && !reservation->slots[slot];
  return place(waiting.queued, left);
}

std::vector<std::size_t> Schedule::order(std::int64_t now_ms) const {
  double left_seconds = 0;  // times slots
  for (const Waiting& one : waiting_)
    left_seconds += one.queued.slots * one.queued.expected_seconds;
  for (const Running& one : running_)
    left_seconds +=
        static_cast<double>(one.slots.size() * static_cast<std::size_t>(std::max<std::int64_t>(
                                                   0, one.expected_end_ms - now_ms))) /
        1000;
  const double last_seconds =
      left_seconds / static_cast<double>(places_.size()) / kExpectedTooShort;
  std::vector<std::size_t> order(waiting_.size());
  std::iota(order.begin(), order.end(), 0);
  const auto before_all = [&](std::size_t index) {
    return waiting_[index].queued.exclusive ||
           waiting_[index].queued.expected_seconds >= last_seconds;
  };
  const auto widest = std::stable_partition(order.begin(), order.end(), before_all);
  std::stable_sort(order.begin(), widest, [&](std::size_t left, std::size_t right) {
    const Queued &one = waiting_[left].queued, &other = waiting_[right].queued;
    return one.exclusive != other.exclusive ? one.exclusive
                                            : one.expected_seconds > other.expected_seconds;
  });
  return order;
}

std::vector<Start> Schedule::start(std::int64_t now_ms) {
  std::vector<Start> starts;
  const auto begin = [&](const Queued& queued, const std::vector<Slot>& slots) {
    for (const Slot slot : slots) free_[static_cast<std::size_t>(slot)] = false;
    starts.push_back({queued.batch, slots});
    running_.push_back({queued, slots, now_ms + expected_ms(queued), {}});
  };
  std::vector<bool> begun(waiting_.size());
  // A prestarted batch has its ranks on these slots already.
  for (std::size_t index = 0; index < waiting_.size(); ++index) {
    const auto& slots = waiting_[index].prestarted_on;
    if (!slots || !std::all_of(slots->begin(), slots->end(),
                               [&](Slot slot) { return free_[static_cast<std::size_t>(slot)]; }))
      continue;
    begin(waiting_[index].queued, *slots);
    begun[index] = true;
  }
  std::optional<std::size_t> passed;
  std::optional<Reservation> reservation;
  // One answer is enough for batches of the same kind, because to look for a place costs a walk
  // over all slots.
  std::set<std::pair<int, bool>> no_place;
  int free_count = count(free_);
  if (free_count > 0)
    for (const std::size_t index : order(now_ms)) {
      Waiting& next = waiting_[index];
      if (free_count == 0) break;
      if (next.prestarted_on) continue;
      const std::pair<int, bool> kind{
          next.queued.slots, reservation && now_ms + expected_ms(next.queued) > reservation->at_ms};
      const bool alike = next.queued.avoided.empty() && !next.queued.exclusive;
      std::optional<std::vector<Slot>> slots;
      if (next.queued.slots <= free_count && !(alike && no_place.contains(kind)))
        slots = may_start(next, reservation, now_ms);
      if (slots) {
        if (passed) ++waiting_[*passed].passed_over;
        free_count -= next.queued.slots;
        begin(next.queued, *slots);
        begun[index] = true;
        continue;
      }
      if (alike) no_place.insert(kind);
      if (next.passed_over >= kPassedOverAtAll) break;
      if (next.passed_over >= kPassedOver && !reservation) {
        reservation = reserve(next.queued, free_, now_ms);
        no_place.clear();
      }
      if (!passed) passed = index;
    }
  std::size_t index = 0;
  std::erase_if(waiting_, [&](const Waiting&) { return begun[index++]; });
  check_idle_slots(reservation, now_ms);
  return starts;
}

void Schedule::check_idle_slots(const std::optional<Reservation>& reservation,
                                std::int64_t now_ms) {
  const auto fits = std::find_if(waiting_.begin(), waiting_.end(), [&](const Waiting& one) {
    return one.prestarted_on && may_start(one, reservation, now_ms);
  });
  if (fits == waiting_.end()) return idle_since_ms_.reset();
  if (!idle_since_ms_) idle_since_ms_ = now_ms;
  if (now_ms - *idle_since_ms_ < kIdle_ms) return;
  for (Running& running : running_)
    if (running.successor == fits->queued.batch) running.successor.clear();
  fits->prestarted_on.reset();
  fits->elsewhere = true;
  idle_since_ms_.reset();
}

std::vector<Start> Schedule::prestart() {
  std::vector<Start> starts;
  for (Running& running : running_) {
    if (running.queued.prestart_key.empty() || running.queued.exclusive ||
        !running.successor.empty())
      continue;
    const auto next = std::find_if(waiting_.begin(), waiting_.end(), [&](const Waiting& waiting) {
      return !waiting.prestarted_on && !waiting.elsewhere && !waiting.queued.exclusive &&
             waiting.queued.prestart_key == running.queued.prestart_key &&
             waiting.queued.slots == static_cast<int>(running.slots.size()) &&
             waiting.queued.avoided.empty();
    });
    if (next == waiting_.end()) continue;
    next->prestarted_on = running.slots;
    running.successor = next->queued.batch;
    starts.push_back({next->queued.batch, running.slots});
  }
  return starts;
}

void Schedule::drop(const std::string& batch) {
  std::erase_if(waiting_, [&](const Waiting& one) { return one.queued.batch == batch; });
  for (Running& running : running_)
    if (running.successor == batch) running.successor.clear();
}

std::vector<Schedule::Running>::iterator Schedule::running(const std::string& batch) {
  const auto found = std::find_if(running_.begin(), running_.end(),
                                  [&](const Running& one) { return one.queued.batch == batch; });
  assert(found != running_.end());
  return found;
}

std::vector<Schedule::Waiting>::iterator Schedule::waiting(const std::string& batch) {
  return std::find_if(waiting_.begin(), waiting_.end(),
                      [&](const Waiting& one) { return one.queued.batch == batch; });
}

void Schedule::release(const std::string& batch) {
  const auto ended = running(batch);
  for (const Slot slot : ended->slots)
    free_[static_cast<std::size_t>(slot)] = !withdrawn_[static_cast<std::size_t>(slot)];
  if (!ended->successor.empty()) {
    const auto next = waiting(ended->successor);
    const bool lost = std::any_of(ended->slots.begin(), ended->slots.end(), [&](Slot slot) {
      return withdrawn_[static_cast<std::size_t>(slot)];
    });
    if (next != waiting_.end() && lost) next->prestarted_on.reset();
  }
  running_.erase(ended);
}

std::vector<Slot> Schedule::strike(const std::string& batch) {
  const Running& struck = *running(batch);
  if (struck.struck) return {};
  const std::vector<Slot> slots = of_same_gpus(struck.slots);
  for (Running& beside : running_)
    beside.struck |= std::any_of(beside.slots.begin(), beside.slots.end(), [&](Slot slot) {
      return std::find(slots.begin(), slots.end(), slot) != slots.end();
    });
  std::vector<Slot> out;
  for (const Slot slot : slots)
    if (++strikes_[static_cast<std::size_t>(slot)] >= kStrikes) out.push_back(slot);
  withdraw(out);
  return out;
}

std::vector<Slot> Schedule::slots_of(const std::string& batch) const {
  const auto found = std::find_if(running_.begin(), running_.end(),
                                  [&](const Running& one) { return one.queued.batch == batch; });
  assert(found != running_.end());
  return found->slots;
}

bool Schedule::prestarted(const std::string& batch) const {
  return std::any_of(waiting_.begin(), waiting_.end(), [&](const Waiting& one) {
    return one.queued.batch == batch && one.prestarted_on;
  });
}

bool Schedule::fits_elsewhere(int slots, const std::vector<Slot>& avoided) const {
  Flags usable = withdrawn_;
  usable.flip();
  for (const Slot slot : of_same_gpus(avoided)) usable[static_cast<std::size_t>(slot)] = false;
  return fits(slots, usable);
}

void Schedule::withdraw(const std::vector<Slot>& slots) {
  for (const Slot slot : of_same_gpus(slots)) {
    withdrawn_[static_cast<std::size_t>(slot)] = true;
    free_[static_cast<std::size_t>(slot)] = false;
  }
}

std::vector<std::string> Schedule::drop_unfit() {
  Flags usable = withdrawn_;
  usable.flip();
  std::vector<std::string> dropped;
  std::erase_if(waiting_, [&](const Waiting& waiting) {
    if (fits(waiting.queued.slots, usable)) return false;
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

std::vector<Slot> Schedule::withdrawn() const {
  std::vector<Slot> slots;
  for (std::size_t slot = 0; slot < withdrawn_.size(); ++slot)
    if (withdrawn_[slot]) slots.push_back(static_cast<Slot>(slot));
  return slots;
}

int Schedule::busy_slots() const {
  int busy = 0;
  for (const Running& running : running_) busy += static_cast<int>(running.slots.size());
  return busy;
}

}  // namespace graphproof::launcher

// A set of numbers that supports insertion, removal and a random draw in constant time. It holds
// the combinations that no row covers at the moment.
#pragma once

#include <cstdint>
#include <vector>

namespace graphproof::cover {

/// A set of numbers below 2^48, stored by open addressing. Elements have positions below size(), so
/// that drawing a position draws an element; a removal may change positions.
class NumberSet {
 public:
  NumberSet() : slots_(kSmallest, 0) {}

  int size() const { return static_cast<int>(items_.size()); }
  std::uint64_t operator[](int position) const {
    return items_[static_cast<std::size_t>(position)];
  }

  /// REQUIRES: the number is not in the set.
  void insert(std::uint64_t number) {
    items_.push_back(number);
    if (items_.size() * 2 > slots_.size()) return grow();
    slots_[free_slot(number)] = static_cast<std::uint32_t>(items_.size());
  }

  /// REQUIRES: the number is in the set.
  void erase(std::uint64_t number) {
    std::size_t at = slot_of(number);
    const std::uint32_t position = slots_[at];
    const std::uint64_t last = items_.back();
    if (last != number) {
      slots_[slot_of(last)] = position;
      items_[position - 1] = last;
    }
    items_.pop_back();
    // Close the gap: an element that a collision pushed past it moves back.
    for (std::size_t next = at;;) {
      next = (next + 1) & (slots_.size() - 1);
      if (slots_[next] == 0) break;
      const std::size_t home = hash(items_[slots_[next] - 1]);
      if (((next - home) & (slots_.size() - 1)) >= ((next - at) & (slots_.size() - 1))) {
        slots_[at] = slots_[next];
        at = next;
      }
    }
    slots_[at] = 0;
  }

  void clear() {
    items_.clear();
    slots_.assign(kSmallest, 0);
  }

 private:
  static constexpr std::size_t kSmallest = 64;

  std::size_t hash(std::uint64_t number) const {
    return static_cast<std::size_t>((number * 0x9E3779B97F4A7C15u) >> 20) & (slots_.size() - 1);
  }
  std::size_t free_slot(std::uint64_t number) const {
    std::size_t at = hash(number);
    while (slots_[at] != 0) at = (at + 1) & (slots_.size() - 1);
    return at;
  }
  std::size_t slot_of(std::uint64_t number) const {
    std::size_t at = hash(number);
    while (items_[slots_[at] - 1] != number) at = (at + 1) & (slots_.size() - 1);
    return at;
  }
  void grow() {
    slots_.assign(slots_.size() * 2, 0);
    for (std::size_t position = 0; position < items_.size(); ++position)
      slots_[free_slot(items_[position])] = static_cast<std::uint32_t>(position + 1);
  }

  std::vector<std::uint64_t> items_;
  std::vector<std::uint32_t> slots_;  // position in items_ + 1; 0 if free
};

}  // namespace graphproof::cover

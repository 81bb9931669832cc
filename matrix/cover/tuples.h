// The combinations of one strength over some columns, as bits. A key is a choice of strength - 1
// symbols, and each key has one bit for every symbol that could complete it. So a combination of n
// symbols has n bits, one for each of its keys, and the combinations that a cell adds or loses are
// counted by a few words of AND and popcount. `Tuples` numbers keys and combinations; `Plane` holds
// their bits.
#pragma once

#include <array>
#include <cassert>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "matrix/cover/problem.h"

namespace graphproof::cover {

/// One combination: symbols in increasing order, of which the first `strength` count.
using Tuple = std::array<int, kMaxStrength>;

/// The numbering of keys and combinations.
class Tuples {
 public:
  /// REQUIRES: 1 <= strength <= columns.size(), columns in increasing order and visible.
  Tuples(const Problem& problem, std::vector<int> columns, int strength);

  int strength() const { return strength_; }
  const std::vector<int>& columns() const { return columns_; }
  int words() const { return words_; }
  std::size_t key_count() const { return key_count_; }
  /// How many numbers combinations have; those of two symbols of one column are never used.
  std::size_t tuple_count() const { return tuple_count_; }
  /// The position of a problem's column in columns(), or -1.
  int position(int column) const { return position_[static_cast<std::size_t>(column)]; }
  /// What `symbol` adds to number() as the symbol in position `slot`, from 1. REQUIRES: its column
  /// is in columns().
  std::size_t place(int slot, int symbol) const {
    return places_[static_cast<std::size_t>(slot) * symbols_ + static_cast<std::size_t>(symbol)];
  }

  /// The number of `length` symbols in increasing order: of a key if length is strength - 1, of a
  /// combination if it is strength.
  std::size_t number(const int* symbols, int length) const {
    std::size_t sum = 0;
    for (int slot = 0; slot < length; ++slot) sum += place(slot + 1, symbols[slot]);
    return sum;
  }
  /// The inverse of number().
  void symbols_of(std::size_t number, int length, int* symbols) const;

  /// How many combinations the whole product has, summed over all choices of columns.
  double raw_count(const Problem& problem) const;

 private:
  int strength_, words_;
  std::size_t key_count_ = 0, tuple_count_ = 0;
  std::vector<int> columns_, position_, symbol_at_;
  std::size_t symbols_;
  std::vector<std::size_t> places_;  // [slot][symbol]: binomial(the symbol's number here, slot)
};

/// The other cells of a row, in column order: with a cell they form the combinations that the walks
/// below go through.
struct Others {
  const int* symbols = nullptr;
  int count = 0;
  int split = 0;  // how many of them are in columns before the cell's column
};

/// A strength that is known at compile time.
template <int kStrength>
using Strength = std::integral_constant<int, kStrength>;

/// A bit for each pair of a key and a symbol, that is, `strength` bits for each combination.
class Plane {
 public:
  explicit Plane(const Tuples& tuples)
      : tuples_(&tuples), bits_(tuples.key_count() * static_cast<std::size_t>(tuples.words()), 0) {}

  Word* key(std::size_t number) {
    return bits_.data() + number * static_cast<std::size_t>(tuples_->words());
  }
  const Word* key(std::size_t number) const {
    return bits_.data() + number * static_cast<std::size_t>(tuples_->words());
  }

  /// Of the combinations that the cell `symbol` forms with the others, whose bits are `bits`: how
  /// many have their bit set.
  int count(const Others& others, int symbol, const Word* bits) const;

  /// The bit of one combination, whose symbols are in increasing order.
  bool test(const int* symbols) const;
  void clear(const int* symbols);
  template <int kStrength>
  void set(const Tuple& symbols, Strength<kStrength>) {
    each_view<kStrength>(symbols,
                         [this](std::size_t number, int symbol) { put(key(number), symbol); });
  }
  template <int kStrength>
  void clear(const Tuple& symbols, Strength<kStrength>) {
    each_view<kStrength>(symbols,
                         [this](std::size_t number, int symbol) { drop(key(number), symbol); });
  }

 private:
  template <int kLeft, bool kPlaced>
  int walk(const Others& others, int to, std::size_t offset, int symbol, const Word* bits,
           int last) const;
  /// Calls `touch(key number, symbol)` for each way to split a combination into a key and a symbol.
  template <int kStrength, class Touch>
  void each_view(const Tuple& symbols, const Touch& touch) const {
    for (int out = 0; out < kStrength; ++out) {
      std::size_t number = 0;
      for (int at = 0; at < kStrength; ++at)
        if (at != out)
          number += tuples_->place(at < out ? at + 1 : at, symbols[static_cast<std::size_t>(at)]);
      touch(number, symbols[static_cast<std::size_t>(out)]);
    }
  }
  template <int kStrength>
  int count_of(const Others& others, int symbol, const Word* bits) const;

  const Tuples* tuples_;
  Words bits_;
};

/// Calls `visit(number, chosen, Strength<...>)` for every combination of `symbol` with the others.
/// `chosen` has its symbols in increasing order.
template <class Visit>
void for_each_tuple(const Tuples& tuples, const Others& others, int symbol, const Visit& visit);

/// Calls `visit(number, symbols)` for every choice of `length` out of `count` symbols, which are in
/// increasing order.
template <class Visit>
void for_each_choice(const Tuples& tuples, const int* symbols, int count, int length,
                     const Visit& visit);

// The walks choose the largest symbol first, so that the innermost loop runs over neighbouring
// numbers.

namespace walks {

template <int kStrength, int kLeft, bool kPlaced, class Visit>
void tuples_of(const Tuples& tuples, const Others& others, int to, std::size_t offset, int symbol,
               Tuple& chosen, const Visit& visit) {
  constexpr int kSlot = kLeft + (kPlaced ? 0 : 1);
  if constexpr (kLeft == 0) {
    if constexpr (!kPlaced) {
      chosen[0] = symbol;
      offset += tuples.place(1, symbol);
    }
    visit(offset, chosen, Strength<kStrength>{});
  } else {
    if constexpr (!kPlaced) {
      for (int at = others.split; at < to; ++at) {
        chosen[kSlot - 1] = others.symbols[at];
        tuples_of<kStrength, kLeft - 1, false>(tuples, others, at,
                                               offset + tuples.place(kSlot, others.symbols[at]),
                                               symbol, chosen, visit);
      }
      chosen[kSlot - 1] = symbol;
      tuples_of<kStrength, kLeft, true>(tuples, others, to < others.split ? to : others.split,
                                        offset + tuples.place(kSlot, symbol), symbol, chosen,
                                        visit);
    } else {
      for (int at = kLeft - 1; at < to; ++at) {
        chosen[kSlot - 1] = others.symbols[at];
        tuples_of<kStrength, kLeft - 1, true>(tuples, others, at,
                                              offset + tuples.place(kSlot, others.symbols[at]),
                                              symbol, chosen, visit);
      }
    }
  }
}

template <int kLeft, class Visit>
void choices_of(const Tuples& tuples, const int* symbols, int to, std::size_t offset, Tuple& chosen,
                const Visit& visit) {
  if constexpr (kLeft == 0) {
    visit(offset, chosen);
  } else {
    for (int at = kLeft - 1; at < to; ++at) {
      chosen[kLeft - 1] = symbols[at];
      choices_of<kLeft - 1>(tuples, symbols, at, offset + tuples.place(kLeft, symbols[at]), chosen,
                            visit);
    }
  }
}

}  // namespace walks

template <class Visit>
void for_each_tuple(const Tuples& tuples, const Others& others, int symbol, const Visit& visit) {
  Tuple chosen{};
  switch (tuples.strength()) {
    case 1:
      return walks::tuples_of<1, 0, false>(tuples, others, others.count, 0, symbol, chosen, visit);
    case 2:
      return walks::tuples_of<2, 1, false>(tuples, others, others.count, 0, symbol, chosen, visit);
    case 3:
      return walks::tuples_of<3, 2, false>(tuples, others, others.count, 0, symbol, chosen, visit);
    case 4:
      return walks::tuples_of<4, 3, false>(tuples, others, others.count, 0, symbol, chosen, visit);
    case 5:
      return walks::tuples_of<5, 4, false>(tuples, others, others.count, 0, symbol, chosen, visit);
    case 6:
      return walks::tuples_of<6, 5, false>(tuples, others, others.count, 0, symbol, chosen, visit);
    default:
      assert(false);
  }
}

template <class Visit>
void for_each_choice(const Tuples& tuples, const int* symbols, int count, int length,
                     const Visit& visit) {
  Tuple chosen{};
  switch (length) {
    case 0:
      return walks::choices_of<0>(tuples, symbols, count, 0, chosen, visit);
    case 1:
      return walks::choices_of<1>(tuples, symbols, count, 0, chosen, visit);
    case 2:
      return walks::choices_of<2>(tuples, symbols, count, 0, chosen, visit);
    case 3:
      return walks::choices_of<3>(tuples, symbols, count, 0, chosen, visit);
    case 4:
      return walks::choices_of<4>(tuples, symbols, count, 0, chosen, visit);
    case 5:
      return walks::choices_of<5>(tuples, symbols, count, 0, chosen, visit);
    case 6:
      return walks::choices_of<6>(tuples, symbols, count, 0, chosen, visit);
    default:
      assert(false);
  }
}

}  // namespace graphproof::cover

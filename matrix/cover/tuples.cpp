#include "matrix/cover/tuples.h"

#include <algorithm>

namespace graphproof::cover {
namespace {

/// binomial(n, k), or a very large number if it does not fit.
std::size_t binomial(std::size_t n, int k) {
  if (static_cast<std::size_t>(k) > n) return 0;
  double estimate = 1;
  std::size_t exact = 1;
  for (int i = 1; i <= k; ++i) {
    const std::size_t factor = n - static_cast<std::size_t>(k) + static_cast<std::size_t>(i);
    estimate = estimate * static_cast<double>(factor) / i;
    if (estimate > 1e18) return SIZE_MAX / 16;  // room for the sum over slots
    exact = exact * factor / static_cast<std::size_t>(i);
  }
  return exact;
}

}  // namespace

Tuples::Tuples(const Problem& problem, std::vector<int> columns, int strength)
    : strength_(strength),
      words_(problem.words()),
      columns_(std::move(columns)),
      position_(static_cast<std::size_t>(problem.columns()), -1),
      symbols_(static_cast<std::size_t>(problem.symbols())) {
  assert(strength >= 1 && strength <= static_cast<int>(columns_.size()) &&
         std::is_sorted(columns_.begin(), columns_.end()));
  places_.assign((static_cast<std::size_t>(strength) + 1) * symbols_, 0);
  for (std::size_t at = 0; at < columns_.size(); ++at) {
    position_[static_cast<std::size_t>(columns_[at])] = static_cast<int>(at);
    for (int symbol = problem.first(columns_[at]); symbol < problem.first(columns_[at] + 1);
         ++symbol) {
      for (int slot = 1; slot <= strength; ++slot)
        places_[static_cast<std::size_t>(slot) * symbols_ + static_cast<std::size_t>(symbol)] =
            binomial(symbol_at_.size(), slot);
      symbol_at_.push_back(symbol);
    }
  }
  key_count_ = binomial(symbol_at_.size(), strength - 1);
  tuple_count_ = binomial(symbol_at_.size(), strength);
}

void Tuples::symbols_of(std::size_t number, int length, int* symbols) const {
  std::size_t high = symbol_at_.size();
  for (int slot = length; slot >= 1; --slot) {
    // The largest symbol whose place does not exceed what is left of the number.
    std::size_t low = 0;
    while (high - low > 1) {
      const std::size_t middle = low + (high - low) / 2;
      (place(slot, symbol_at_[middle]) <= number ? low : high) = middle;
    }
    symbols[slot - 1] = symbol_at_[low];
    number -= place(slot, symbol_at_[low]);
    high = std::max<std::size_t>(low, 1);
  }
}

double Tuples::raw_count(const Problem& problem) const {
  // The elementary symmetric polynomial of the column sizes is the sum over all choices of columns.
  std::vector<double> sums(static_cast<std::size_t>(strength_) + 1, 0);
  sums[0] = 1;
  for (const int column : columns_)
    for (std::size_t chosen = sums.size() - 1; chosen > 0; --chosen)
      sums[chosen] += sums[chosen - 1] * problem.size(column);
  return sums.back();
}

template <int kLeft, bool kPlaced>
int Plane::walk(const Others& others, int to, std::size_t offset, int symbol, const Word* bits,
                int last) const {
  constexpr int kSlot = kLeft + (kPlaced ? 0 : 1);
  if constexpr (kLeft == 0) {
    if constexpr (!kPlaced) offset += tuples_->place(1, symbol);
    // Only symbols after the largest chosen one count, so that each combination counts once.
    const Word* words = key(offset);
    int word = last >> 6;
    int sum = std::popcount(words[word] & bits[word] & (~Word{0} << (last & 63)));
    for (++word; word < tuples_->words(); ++word) sum += std::popcount(words[word] & bits[word]);
    return sum;
  } else {
    int sum = 0;
    if constexpr (!kPlaced) {
      for (int at = others.split; at < to; ++at)
        sum += walk<kLeft - 1, false>(
            others, at, offset + tuples_->place(kSlot, others.symbols[at]), symbol, bits, last);
      sum += walk<kLeft, true>(others, std::min(to, others.split),
                               offset + tuples_->place(kSlot, symbol), symbol, bits, last);
    } else {
      for (int at = kLeft - 1; at < to; ++at)
        sum += walk<kLeft - 1, true>(others, at, offset + tuples_->place(kSlot, others.symbols[at]),
                                     symbol, bits, last);
    }
    return sum;
  }
}

template <int kStrength>
int Plane::count_of(const Others& others, int symbol, const Word* bits) const {
  if constexpr (kStrength == 1) {
    return has(key(0), symbol) ? 1 : 0;
  } else if constexpr (kStrength == 2) {
    const Word* words = key(tuples_->place(1, symbol));
    int sum = 0;
    for (int word = 0; word < tuples_->words(); ++word)
      sum += std::popcount(words[word] & bits[word]);
    return sum;
  } else {
    constexpr int kOthers = kStrength - 2;  // the other symbols of a key
    int sum = 0;
    for (int at = kOthers - 1; at < others.count; ++at) {
      const int last = others.symbols[at];
      if (at < others.split)
        sum += walk<kOthers - 1, true>(
            others, at, tuples_->place(kOthers + 1, symbol) + tuples_->place(kOthers, last), symbol,
            bits, last);
      else
        sum += walk<kOthers - 1, false>(others, at, tuples_->place(kOthers + 1, last), symbol, bits,
                                        last);
    }
    return sum;
  }
}

int Plane::count(const Others& others, int symbol, const Word* bits) const {
  switch (tuples_->strength()) {
    case 1:
      return count_of<1>(others, symbol, bits);
    case 2:
      return count_of<2>(others, symbol, bits);
    case 3:
      return count_of<3>(others, symbol, bits);
    case 4:
      return count_of<4>(others, symbol, bits);
    case 5:
      return count_of<5>(others, symbol, bits);
    default:
      return count_of<6>(others, symbol, bits);
  }
}

bool Plane::test(const int* symbols) const {
  const int last = tuples_->strength() - 1;
  return has(key(tuples_->number(symbols, last)), symbols[last]);
}

void Plane::clear(const int* symbols) {
  const int strength = tuples_->strength();
  for (int out = 0; out < strength; ++out) {
    std::size_t number = 0;
    for (int at = 0; at < strength; ++at)
      if (at != out) number += tuples_->place(at < out ? at + 1 : at, symbols[at]);
    drop(key(number), symbols[out]);
  }
}

}  // namespace graphproof::cover

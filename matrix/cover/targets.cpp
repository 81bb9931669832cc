#include "matrix/cover/targets.h"

#include <algorithm>

namespace graphproof::cover {

Neighbours::Neighbours(const std::vector<Tuples>& layers)
    : layers_(&layers), symbols_(layers.size()), others_(layers.size()), concerns_(layers.size()) {
  for (std::size_t layer = 0; layer < layers.size(); ++layer) {
    symbols_[layer].resize(layers[layer].columns().size());
    deep_ = deep_ || layers[layer].strength() > 2;
  }
}

void Neighbours::look(const int* row, int column) {
  for (std::size_t layer = 0; layer < symbols_.size(); ++layer) {
    const Tuples& tuples = (*layers_)[layer];
    concerns_[layer] = tuples.position(column) >= 0;
    if (!concerns_[layer]) continue;
    int* symbols = symbols_[layer].data();
    int count = 0, split = 0;
    for (const int other : tuples.columns()) {
      if (other == column) split = count;
      if (other == column || row[other] < 0) continue;
      symbols[count++] = row[other];
    }
    others_[layer] = {symbols, count, split};
  }
}

namespace {

/// binomial(n, k), for numbers of columns, which are small.
std::uint32_t choices(std::size_t n, std::size_t k) {
  if (n < k) return 0;
  std::size_t result = 1;
  for (std::size_t i = 1; i <= k; ++i) result = result * (n - k + i) / i;
  return static_cast<std::uint32_t>(result);
}

}  // namespace

Targets::Targets(const Problem& problem, const std::vector<Tuples>& layers)
    : problem_(&problem), layers_(&layers), left_(layers.size()), places_(layers.size()) {
  const auto symbols = static_cast<std::size_t>(problem.symbols());
  for (const Tuples& tuples : layers) open_.emplace_back(tuples);
  for (std::size_t layer = 0; layer < layers.size(); ++layer) {
    const Tuples& tuples = layers[layer];
    const auto strength = static_cast<std::size_t>(tuples.strength());
    left_[layer].assign(choices(tuples.columns().size(), strength), 0);
    places_[layer].assign(strength * symbols, 0);
    for (std::size_t slot = 0; slot < strength; ++slot)
      for (std::size_t symbol = 0; symbol < symbols; ++symbol)
        if (const int at = tuples.position(problem.column_of(static_cast<int>(symbol))); at >= 0)
          places_[layer][slot * symbols + symbol] = choices(static_cast<std::size_t>(at), slot + 1);
    open_all(layer);
  }
  for (std::size_t layer = 0; layer < layers.size(); ++layer)
    for (std::size_t number = 0; number < left_[layer].size(); ++number) {
      const auto count = static_cast<std::size_t>(left_[layer][number]);
      if (count >= queue_.size()) queue_.resize(count + 1);
      if (count > 0)
        queue_[count].push_back(
            {static_cast<std::uint32_t>(layer), static_cast<std::uint32_t>(number)});
    }
}

std::size_t Targets::number_of(std::size_t layer, const int* symbols) const {
  const auto stride = static_cast<std::size_t>(problem_->symbols());
  std::size_t number = 0;
  for (int slot = 0; slot < (*layers_)[layer].strength(); ++slot)
    number += places_[layer][static_cast<std::size_t>(slot) * stride +
                             static_cast<std::size_t>(symbols[slot])];
  return number;
}

void Targets::open_all(std::size_t layer) {
  const Problem& problem = *problem_;
  const Tuples& tuples = (*layers_)[layer];
  const auto words = static_cast<std::size_t>(problem.words());
  std::vector<int> symbols;
  Words all(words, 0);
  for (const int column : tuples.columns())
    for (int symbol = problem.first(column); symbol < problem.first(column + 1); ++symbol) {
      symbols.push_back(symbol);
      if (has(problem.allowed().data(), symbol)) put(all.data(), symbol);
    }
  // A key is chosen from its largest symbol down; `left` has the symbols that no chosen one
  // forbids.
  Tuple chosen{};
  const int strength = tuples.strength();
  const auto descend = [&](const auto& self, int slot, std::size_t below, std::size_t number,
                           const Words& fitting) -> void {
    if (slot == 0) {
      std::copy(fitting.begin(), fitting.end(), open_[layer].key(number));
      for_each_bit(fitting.data(),
                   strength > 1 ? chosen[static_cast<std::size_t>(strength) - 2] : 0, words,
                   [&](int symbol) {
                     chosen[static_cast<std::size_t>(strength) - 1] = symbol;
                     ++left_[layer][number_of(layer, chosen.data())];
                   });
      return;
    }
    for (std::size_t at = 0; at < below; ++at) {
      const int symbol = symbols[at];
      if (!has(fitting.data(), symbol)) continue;
      Words fewer = fitting;
      const Word* forbidden = problem.forbidden(symbol);
      for (std::size_t word = 0; word < words; ++word) fewer[word] &= ~forbidden[word];
      const int column = problem.column_of(symbol);
      drop_range(fewer.data(), problem.first(column), problem.first(column + 1));
      chosen[static_cast<std::size_t>(slot) - 1] = symbol;
      self(self, slot - 1, at, number + tuples.place(slot, symbol), fewer);
    }
  };
  descend(descend, strength - 1, symbols.size(), 0, all);
}

void Targets::cover(const int* row, const Word* bits) {
  std::vector<int> symbols;
  for (std::size_t layer = 0; layer < open_.size(); ++layer) {
    const Tuples& tuples = (*layers_)[layer];
    const auto words = static_cast<std::size_t>(tuples.words());
    const auto strength = static_cast<std::size_t>(tuples.strength());
    symbols.clear();
    for (const int column : tuples.columns()) symbols.push_back(row[column]);
    for_each_choice(tuples, symbols.data(), static_cast<int>(symbols.size()), tuples.strength() - 1,
                    [&](std::size_t number, Tuple& chosen) {
                      Word* key = open_[layer].key(number);
                      for (std::size_t word = 0; word < words; ++word) {
                        Word taken = key[word] & bits[word];
                        key[word] &= ~taken;
                        // A combination is met once from each of its symbols, and counts once: from
                        // its largest symbol.
                        for (; taken != 0; taken &= taken - 1) {
                          const int symbol = static_cast<int>(word) * 64 + std::countr_zero(taken);
                          if (strength > 1 && symbol < chosen[strength - 2]) continue;
                          chosen[strength - 1] = symbol;
                          --left_[layer][number_of(layer, chosen.data())];
                        }
                      }
                    });
  }
}

double Targets::worth(const int* row, const Word* bits) const {
  double sum = 0;
  std::vector<int> symbols;
  for (std::size_t layer = 0; layer < open_.size(); ++layer) {
    const Tuples& tuples = (*layers_)[layer];
    const auto strength = static_cast<std::size_t>(tuples.strength());
    symbols.clear();
    for (const int column : tuples.columns()) symbols.push_back(row[column]);
    for_each_choice(tuples, symbols.data(), static_cast<int>(symbols.size()), tuples.strength() - 1,
                    [&](std::size_t number, Tuple& chosen) {
                      const Word* key = open_[layer].key(number);
                      const int last = strength > 1 ? chosen[strength - 2] : 0;
                      for (auto word = static_cast<std::size_t>(last >> 6);
                           word < static_cast<std::size_t>(tuples.words()); ++word) {
                        for (Word taken = key[word] & bits[word]; taken != 0; taken &= taken - 1) {
                          const int symbol = static_cast<int>(word) * 64 + std::countr_zero(taken);
                          if (symbol < last) continue;
                          chosen[strength - 1] = symbol;
                          const double left = left_[layer][number_of(layer, chosen.data())];
                          sum += left * left * left;
                        }
                      }
                    });
  }
  return sum;
}

void Targets::close(std::size_t layer, const Tuple& tuple) {
  if (!open_[layer].test(tuple.data())) return;
  open_[layer].clear(tuple.data());
  --left_[layer][number_of(layer, tuple.data())];
}

bool Targets::pick(Random& random, std::size_t& layer, Tuple& tuple) {
  while (!queue_.empty()) {
    std::vector<Columns>& most = queue_.back();
    if (most.empty()) {
      queue_.pop_back();
      continue;
    }
    std::swap(most.back(),
              most[static_cast<std::size_t>(random.below(static_cast<int>(most.size())))]);
    const Columns columns = most.back();
    const auto now = static_cast<std::size_t>(left_[columns.layer][columns.number]);
    if (now + 1 < queue_.size()) {
      most.pop_back();
      if (now > 0) queue_[now].push_back(columns);
      continue;
    }
    layer = columns.layer;
    return find(columns, random, tuple);
  }
  return false;
}

bool Targets::find(const Columns& chosen, Random& random, Tuple& tuple) const {
  const Tuples& tuples = (*layers_)[chosen.layer];
  const auto strength = static_cast<std::size_t>(tuples.strength());
  std::array<int, kMaxStrength> columns{};
  std::uint32_t number = chosen.number;
  std::size_t high = tuples.columns().size();
  for (std::size_t slot = strength; slot >= 1; --slot) {
    do --high;
    while (choices(high, slot) > number);
    number -= choices(high, slot);
    columns[slot - 1] = tuples.columns()[high];
  }
  // Counts up like an odometer from a random setting, until it meets an open combination.
  for (std::size_t at = 0; at < strength; ++at)
    tuple[at] = problem_->first(columns[at]) + random.below(problem_->size(columns[at]));
  const Tuple begin = tuple;
  do {
    if (open_[chosen.layer].test(tuple.data())) return true;
    for (std::size_t at = 0; at < strength; ++at) {
      if (++tuple[at] < problem_->first(columns[at] + 1)) break;
      tuple[at] = problem_->first(columns[at]);
    }
  } while (tuple != begin);
  return false;
}

double Targets::open_count(std::size_t layer) const {
  double sum = 0;
  for (const int left : left_[layer]) sum += left;
  return sum;
}

int Targets::most() const {
  int most = 0;
  for (const std::vector<int>& layer : left_)
    for (const int left : layer) most = std::max(most, left);
  return most;
}

}  // namespace graphproof::cover

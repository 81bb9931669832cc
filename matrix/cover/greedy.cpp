#include "matrix/cover/greedy.h"

#include <algorithm>
#include <numeric>

namespace graphproof::cover {

Greedy::Greedy(Problem& problem, const std::vector<Tuples>& layers, Oracle& oracle, Random random)
    : problem_(&problem),
      layers_(&layers),
      builder_(problem, oracle),
      random_(random),
      neighbours_(layers),
      order_(static_cast<std::size_t>(problem.columns())),
      bits_(static_cast<std::size_t>(problem.words())) {
  std::iota(order_.begin(), order_.end(), 0);
}

bool Greedy::build(const Targets& targets, const std::vector<int>& fixed, const SymbolRow& wished,
                   SymbolRow& row) {
  for (std::size_t at = order_.size(); at > 1; --at)
    std::swap(order_[at - 1],
              order_[static_cast<std::size_t>(random_.below(static_cast<int>(at)))]);
  std::stable_sort(order_.begin(), order_.end(), [&](int left, int right) {
    return problem_->size(left) > problem_->size(right);
  });
  const auto wish = [&](int column) {
    return wished.empty() ? -1 : wished[static_cast<std::size_t>(column)];
  };
  std::stable_partition(order_.begin(), order_.end(),
                        [&](int column) { return wish(column) >= 0; });
  std::fill(bits_.begin(), bits_.end(), 0);
  for (const int symbol : fixed) put(bits_.data(), symbol);
  const bool pairs = (*layers_)[0].strength() == 2;
  std::size_t decided = 0;  // bits_ has the symbols of the columns order_[0, decided)
  const auto choose = [&](int column, const Domains& domains, const int* cells) {
    for (; order_[decided] != column; ++decided)
      if (const int done = cells[order_[decided]]; done >= 0) put(bits_.data(), done);
    if (wish(column) >= 0 && domains.can(wish(column))) return wish(column);
    neighbours_.look_to_count(cells, column);
    // Prefer the symbol that covers most together with the decided columns, then the one that could
    // cover most with the others, then the one with the larger weight.
    int best = -1, best_gain = -1, best_hope = -1, tied_weight = 0;
    for (int symbol = problem_->first(column); symbol < problem_->first(column + 1); ++symbol) {
      if (!domains.can(symbol)) continue;
      const int gain = targets.gain(neighbours_, symbol, bits_.data());
      int hope = 0;
      if (pairs && neighbours_.concerns(0)) {
        const Word* key = targets.plane(0).key((*layers_)[0].place(1, symbol));
        for (int word = 0; word < problem_->words(); ++word)
          hope += std::popcount(key[word] & domains.bits()[word]);
      }
      if (gain < best_gain || (gain == best_gain && hope < best_hope)) continue;
      const int weight = problem_->weight(symbol);
      tied_weight = gain == best_gain && hope == best_hope ? tied_weight + weight : weight;
      if (tied_weight > weight && random_.below(tied_weight) >= weight) continue;
      best = symbol;
      best_gain = gain;
      best_hope = hope;
    }
    return best;
  };
  return builder_.build(fixed, order_, choose, row.data());
}

bool Greedy::fill(Targets& targets, int candidates, const SymbolCost& cost,
                  const std::function<bool()>& stop, std::vector<SymbolRow>& rows) {
  SymbolRow row(static_cast<std::size_t>(problem_->columns())), best;
  Words bits(bits_.size());
  const auto mark = [&](const SymbolRow& symbols) {
    std::fill(bits.begin(), bits.end(), 0);
    for (const int symbol : symbols) put(bits.data(), symbol);
  };
  std::size_t layer = 0;
  Tuple tuple{};
  while (targets.pick(random_, layer, tuple)) {
    if (stop && stop()) return false;
    double best_worth = -1;
    for (int tried = 0; tried < candidates; ++tried) {
      if (tried > 0 && !targets.pick(random_, layer, tuple)) break;
      const std::vector<int> fixed(tuple.begin(), tuple.begin() + (*layers_)[layer].strength());
      if (!build(targets, fixed, row)) {
        targets.close(layer, tuple);
        if (fixed.size() == 1) problem_->ban(fixed[0]);
        if (fixed.size() == 2) problem_->forbid(fixed[0], fixed[1]);
        unreachable_.push_back({layer, tuple});
        continue;
      }
      if (candidates == 1) {
        best = row;
        best_worth = 0;
        break;
      }
      mark(row);
      double worth = targets.worth(row.data(), bits.data());
      if (cost) worth /= cost(row);
      if (worth <= best_worth) continue;
      best_worth = worth;
      best = row;
    }
    if (best_worth < 0) continue;  // every combination that was picked is unreachable
    mark(best);
    targets.cover(best.data(), bits.data());
    rows.push_back(best);
  }
  return true;
}

bool Greedy::fill_along(const std::vector<SymbolRow>& pattern, Targets& targets,
                        const std::function<bool()>& stop, std::vector<SymbolRow>& rows) {
  SymbolRow row(static_cast<std::size_t>(problem_->columns()));
  Words bits(bits_.size());
  for (const SymbolRow& wished : pattern) {
    if (stop && stop()) return false;
    if (!build(targets, {}, wished, row)) continue;
    std::fill(bits.begin(), bits.end(), 0);
    for (const int symbol : row) put(bits.data(), symbol);
    if (targets.worth(row.data(), bits.data()) <= 0) continue;
    targets.cover(row.data(), bits.data());
    rows.push_back(row);
  }
  return true;
}

}  // namespace graphproof::cover

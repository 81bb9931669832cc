#include "matrix/cover/search.h"

#include <algorithm>
#include <numeric>

namespace graphproof::cover {
namespace {

// A cell that changed 1 to 4 steps ago does not change again. These lengths were found by
// experiment on random and published models: longer ones are worse for pairs, and without a tabu
// list results are much worse.
constexpr int kTenure = 2, kTenureSpread = 3;
// One step in so many is forced, whatever its score, so that no cycle lasts.
constexpr int kForcedOneIn = 1000;
constexpr int kForcedRows = 4;      // rows that a forced step tries
constexpr int kRemovalSample = 64;  // rows that are compared before one is removed
constexpr int kStopEvery = 64;      // steps between two calls of `stop`

}  // namespace

Search::Search(const Problem& problem, const std::vector<Tuples>& layers, Oracle& oracle,
               Random random)
    : problem_(&problem),
      builder_(problem, oracle),
      random_(random),
      neighbours_(layers),
      columns_(static_cast<std::size_t>(problem.columns())),
      words_(static_cast<std::size_t>(problem.words())),
      order_(columns_) {
  std::iota(order_.begin(), order_.end(), 0);
  for (const Tuples& each : layers) layers_.emplace_back(each);
}

double Search::bytes(const Problem& problem, const std::vector<Tuples>& layers, std::size_t rows) {
  double sum = static_cast<double>(rows) *
               (problem.columns() * 16.0 + problem.words() * 8.0 + problem.symbols() / 8.0);
  for (const Tuples& tuples : layers)
    sum += 2.0 * static_cast<double>(tuples.tuple_count()) +
           16.0 * static_cast<double>(tuples.key_count()) * tuples.words();
  return sum;
}

void Search::start(std::vector<SymbolRow> rows, const std::vector<std::vector<char>>& frozen,
                   SymbolCost cost) {
  best_ = std::move(rows);
  cost_ = std::move(cost);
  row_words_ = (best_.size() + 63) / 64;
  rows_with_.assign(row_words_ * static_cast<std::size_t>(problem_->symbols()), 0);
  cells_.assign(best_.size() * columns_, -1);
  bits_.assign(best_.size() * words_, 0);
  changed_at_.assign(cells_.size(), -kTenure - kTenureSpread);
  frozen_.assign(cells_.size(), 0);
  kept_.assign(best_.size(), 0);
  best_cost_ = 0;
  for (const SymbolRow& row : best_) {
    for (const int symbol : row) fill(count_, symbol);
    if (cost_) best_cost_ += cost_(row);
    ++count_;
  }
  for (std::size_t row = 0; row < frozen.size(); ++row)
    for (std::size_t column = 0; column < frozen[row].size(); ++column)
      if (frozen[row][column]) frozen_[row * columns_ + column] = kept_[row] = 1;
  tracked_ = true;
}

void Search::fill(int row, int symbol) {
  const int column = problem_->column_of(symbol);
  neighbours_.look(cells(row), column);
  for (std::size_t at = 0; at < layers_.size(); ++at) {
    if (!neighbours_.concerns(at)) continue;
    Layer& layer = layers_[at];
    for_each_tuple(*layer.tuples, neighbours_.of(at), symbol,
                   [&](std::size_t number, const Tuple& tuple, auto strength) {
                     const unsigned before = layer.counts[number]++;
                     if (before == 0) {
                       layer.open.clear(tuple, strength);
                       layer.single.set(tuple, strength);
                       if (tracked_) layer.missing.erase(number);
                     } else if (before == 1) {
                       layer.single.clear(tuple, strength);
                     }
                   });
  }
  cells(row)[column] = symbol;
  put(bits(row), symbol);
  put(rows_with(symbol), row);
}

void Search::empty(int row, int column) {
  const int symbol = cells(row)[column];
  neighbours_.look(cells(row), column);
  for (std::size_t at = 0; at < layers_.size(); ++at) {
    if (!neighbours_.concerns(at)) continue;
    Layer& layer = layers_[at];
    for_each_tuple(*layer.tuples, neighbours_.of(at), symbol,
                   [&](std::size_t number, const Tuple& tuple, auto strength) {
                     const unsigned after = --layer.counts[number];
                     if (after == 0) {
                       layer.open.set(tuple, strength);
                       layer.single.clear(tuple, strength);
                       layer.missing.insert(number);
                     } else if (after == 1) {
                       layer.single.set(tuple, strength);
                     }
                   });
  }
  drop(bits(row), symbol);
  drop(rows_with(symbol), row);
  cells(row)[column] = -1;
}

void Search::replace(int row, const SymbolRow& made) {
  // The row is emptied first: a mixture of the old and the new row could have combinations that no
  // valid row has.
  std::vector<int> fresh;
  for (std::size_t column = 0; column < columns_; ++column) {
    if (made[column] == cells(row)[column]) continue;
    fresh.push_back(made[column]);
    empty(row, static_cast<int>(column));
  }
  for (const int symbol : fresh) fill(row, symbol);
}

void Search::remove_row(int row) {
  for (std::size_t column = 0; column < columns_; ++column) empty(row, static_cast<int>(column));
  const int last = --count_;
  if (row == last) return;
  for (std::size_t column = 0; column < columns_; ++column) {
    const int symbol = cells(last)[column];
    drop(rows_with(symbol), last);
    put(rows_with(symbol), row);
  }
  const auto move = [&](auto& values) {
    std::copy_n(values.begin() + static_cast<std::ptrdiff_t>(cell(last, 0)), columns_,
                values.begin() + static_cast<std::ptrdiff_t>(cell(row, 0)));
  };
  move(cells_);
  move(changed_at_);
  move(frozen_);
  kept_[static_cast<std::size_t>(row)] = kept_[static_cast<std::size_t>(last)];
  std::fill_n(cells(last), columns_, -1);
  std::copy_n(bits(last), words_, bits(row));
  std::fill_n(bits(last), words_, 0);
}

int Search::loss(int row) {
  int sum = 0;
  for (int column = 0; column < problem_->visible(); ++column) {
    neighbours_.look_to_count(cells(row), column);
    for (std::size_t at = 0; at < layers_.size(); ++at)
      if (neighbours_.concerns(at))
        sum += layers_[at].single.count(neighbours_.of(at), cells(row)[column], bits(row));
  }
  return sum;
}

bool Search::remove_one() {
  std::vector<int> free;
  for (int row = 0; row < count_; ++row)
    if (!kept_[static_cast<std::size_t>(row)]) free.push_back(row);
  if (free.empty()) return false;
  const bool all = free.size() <= kRemovalSample;
  int best = -1, ties = 0;
  double best_loss = 0;
  for (int look = 0; look < (all ? static_cast<int>(free.size()) : kRemovalSample); ++look) {
    const int row =
        free[static_cast<std::size_t>(all ? look : random_.below(static_cast<int>(free.size())))];
    const double value = cost_ ? (loss(row) + 1.0) / cost_of(row) : loss(row);
    if (best >= 0 && value > best_loss) continue;
    ties = best >= 0 && value == best_loss ? ties + 1 : 1;
    if (ties > 1 && random_.below(ties) != 0) continue;
    best = row;
    best_loss = value;
  }
  remove_row(best);
  lowest_ = missing();
  return true;
}

void Search::save() {
  if (cost_) {
    cheapen();
    double total = 0;
    for (int row = 0; row < count_; ++row) total += cost_of(row);
    if (total >= best_cost_) return;
    best_cost_ = total;
  }
  best_.resize(static_cast<std::size_t>(count_));
  for (int row = 0; row < count_; ++row)
    best_[static_cast<std::size_t>(row)].assign(cells(row), cells(row) + columns_);
}

void Search::cheapen() {
  for (bool changed = true; changed;) {
    changed = false;
    for (int row = 0; row < count_; ++row)
      for (int column = 0; column < problem_->visible(); ++column) {
        if (frozen_[cell(row, column)]) continue;
        for (int symbol = problem_->first(column); symbol < problem_->first(column + 1); ++symbol) {
          if (symbol == cells(row)[column] ||
              !problem_->allows(bits(row), cells(row)[column], symbol))
            continue;
          if (delta(row, column, symbol) > 0 || cost_change(row, column, symbol) >= 0) continue;
          empty(row, column);
          fill(row, symbol);
          changed = true;
        }
      }
  }
}

double Search::cost_of(int row) { return cost_(SymbolRow(cells(row), cells(row) + columns_)); }

double Search::cost_change(int row, int column, int symbol) {
  SymbolRow made(cells(row), cells(row) + columns_);
  const double before = cost_(made);
  made[static_cast<std::size_t>(column)] = symbol;
  return cost_(made) - before;
}

int Search::missing() const {
  int sum = 0;
  for (const Layer& layer : layers_) sum += layer.missing.size();
  return sum;
}

int Search::delta(int row, int column, int symbol) {
  neighbours_.look_to_count(cells(row), column);
  int sum = 0;
  for (std::size_t at = 0; at < layers_.size(); ++at) {
    if (!neighbours_.concerns(at)) continue;
    sum += layers_[at].single.count(neighbours_.of(at), cells(row)[column], bits(row));
    sum -= layers_[at].open.count(neighbours_.of(at), symbol, bits(row));
  }
  return sum;
}

bool Search::run(std::int64_t steps, int enough, const std::function<bool()>& stop) {
  for (std::int64_t done = 0; done < steps; ++done) {
    while (missing() == 0) {
      save();
      if ((count_ <= enough && !cost_) || count_ <= 1 || !remove_one()) return false;
    }
    if (stop && steps_ % kStopEvery == 0 && stop()) return false;
    step();
    ++steps_;
  }
  if (missing() == 0) save();
  return true;
}

int Search::draw(Tuple& tuple) {
  int chosen = random_.below(missing());
  std::size_t at = 0;
  while (chosen >= layers_[at].missing.size()) chosen -= layers_[at++].missing.size();
  const Tuples& tuples = *layers_[at].tuples;
  tuples.symbols_of(layers_[at].missing[chosen], tuples.strength(), tuple.data());
  return tuples.strength();
}

void Search::step() {
  Tuple tuple{};
  const int strength = draw(tuple);
  const Move move = best_move(tuple, strength, missing());
  if (move.row < 0 || random_.below(kForcedOneIn) == 0) {
    force(tuple, strength);
  } else {
    changed_at_[cell(move.row, move.column)] = steps_;
    empty(move.row, move.column);
    fill(move.row, move.symbol);
  }
  lowest_ = std::min(lowest_, missing());
}

Search::Move Search::best_move(const Tuple& tuple, int strength, int total) {
  Move best;
  int ties = 0;
  const int words = (count_ + 63) / 64;
  for (int out = 0; out < strength; ++out) {
    // The rows that have the whole combination except this symbol.
    const int symbol = tuple[static_cast<std::size_t>(out)], column = problem_->column_of(symbol);
    for (int word = 0; word < words; ++word) {
      Word rows = ~Word{0};
      for (int in = 0; in < strength; ++in)
        if (in != out) rows &= rows_with(tuple[static_cast<std::size_t>(in)])[word];
      if (word == words - 1 && count_ % 64 != 0) rows &= (Word{1} << (count_ % 64)) - 1;
      for (; rows != 0; rows &= rows - 1) {
        const int row = word * 64 + std::countr_zero(rows);
        if (frozen_[cell(row, column)] || !problem_->allows(bits(row), cells(row)[column], symbol))
          continue;
        const int change = delta(row, column, symbol);
        if (best.row >= 0 && change > best.delta) continue;
        const bool tabu =
            steps_ - changed_at_[cell(row, column)] <= kTenure + random_.below(kTenureSpread);
        if (tabu && total + change >= lowest_) continue;
        const double cost = cost_ ? cost_change(row, column, symbol) : 0;
        const bool equal = best.row >= 0 && change == best.delta;
        if (equal && cost > best.cost) continue;
        ties = equal && cost == best.cost ? ties + 1 : 1;
        if (ties > 1 && random_.below(ties) != 0) continue;
        best = {row, column, symbol, change, cost};
      }
    }
  }
  return best;
}

void Search::force(const Tuple& tuple, int strength) {
  SymbolRow made(columns_), best_made, before;
  int best_row = -1, best_missing = 0;
  std::vector<int> fixed;
  for (int attempt = 0; attempt < kForcedRows; ++attempt) {
    const int row = random_.below(count_);
    before.assign(cells(row), cells(row) + columns_);
    fixed.assign(tuple.begin(), tuple.begin() + strength);
    for (std::size_t column = 0; column < columns_; ++column)
      if (frozen_[cell(row, static_cast<int>(column))]) fixed.push_back(before[column]);
    for (std::size_t at = order_.size(); at > 1; --at)
      std::swap(order_[at - 1],
                order_[static_cast<std::size_t>(random_.below(static_cast<int>(at)))]);
    const auto keep = [&](int column, const Domains& domains, const int*) {
      if (domains.can(before[static_cast<std::size_t>(column)]))
        return before[static_cast<std::size_t>(column)];
      int chosen = random_.below(domains.size(column)), symbol = domains.first(column);
      while (!domains.can(symbol) || chosen-- > 0) ++symbol;
      return symbol;
    };
    if (!builder_.build(fixed, order_, keep, made.data()))
      continue;  // the row's frozen cells exclude it
    replace(row, made);
    if (best_row < 0 || missing() < best_missing) {
      best_row = row;
      best_missing = missing();
      best_made = made;
    }
    replace(row, before);
  }
  if (best_row < 0) return;
  for (std::size_t column = 0; column < columns_; ++column)
    if (best_made[column] != cells(best_row)[column])
      changed_at_[cell(best_row, static_cast<int>(column))] = steps_;
  replace(best_row, best_made);
}

}  // namespace graphproof::cover

#include "matrix/cover/part.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <exception>
#include <limits>
#include <mutex>
#include <numeric>
#include <queue>
#include <thread>

#include "matrix/cover/orthogonal.h"
#include "matrix/cover/search.h"
#include "matrix/input/input_error.h"

namespace graphproof::cover {
namespace {

// A model that is small enough gets so many candidates for each row of a first answer, and so many
// first answers. The budgets bound both for large models.
constexpr int kCandidates = 8, kStarts = 24;
constexpr double kCandidateBudget = 15e5;  // combinations x candidates: some tenths of a second
constexpr double kStartBudget = 2e6;       // combinations x first answers
// An orthogonal array is tried if it has at most so many times the rows of the best answer, because
// constraints and missing values let it do with fewer.
constexpr double kPatternSlack = 1.2;
constexpr double kOrderBudget = 1e9;  // combinations that are looked at to put rows in order
constexpr double kMostRows = 5e6;
constexpr int kMostChangedCells = 2;  // of a previous row; with more it would be another row
constexpr int kRepairTries = 32;

/// The seed of an independent stream of random numbers, such as that of start i or of search i.
std::uint64_t stream(std::uint64_t seed, std::uint64_t kind, std::uint64_t index) {
  return seed * 0x9E3779B97F4A7C15u + (kind << 40) + index;
}

/// Calls `work` with 0 to count - 1 on up to `threads` threads. Throws the first exception of a
/// call.
template <class Work>
void spread(int count, int threads, const Work& work) {
  std::atomic<int> next = 0;
  std::mutex guard;
  std::exception_ptr met;
  const auto loop = [&] {
    for (int index; (index = next.fetch_add(1)) < count;) {
      try {
        work(index);
      } catch (...) {
        const std::lock_guard lock(guard);
        if (!met) met = std::current_exception();
        next = count;
      }
    }
  };
  {
    std::vector<std::jthread> helpers;
    for (int helper = 1; helper < std::min(threads, count); ++helper) helpers.emplace_back(loop);
    loop();
  }
  if (met) std::rethrow_exception(met);
}

class Part {
 public:
  Part(const Model& model, const std::vector<PartDemand>& demands, const Options& options)
      : model_(model), options_(options), problem_(model), oracle_(model) {
    for (const PartDemand& demand : demands) {
      layers_.emplace_back(problem_, demand.columns, demand.strength);
      result_.demands.push_back(
          {demand.columns, demand.strength, layers_.back().raw_count(problem_), 0});
      combinations_ += result_.demands.back().raw;
    }
    if (options.cost) cost_ = [this](const SymbolRow& row) { return options_.cost(shown(row)); };
  }

  Result run();

 private:
  Row shown(const SymbolRow& row) const {
    Row values(static_cast<std::size_t>(problem_.visible()));
    for (std::size_t column = 0; column < values.size(); ++column)
      values[column] = row[column] - problem_.first(static_cast<int>(column));
    return values;
  }
  double total(const std::vector<SymbolRow>& rows) const {
    if (!cost_) return static_cast<double>(rows.size());
    double sum = 0;
    for (const SymbolRow& row : rows) sum += cost_(row);
    return sum;
  }
  Words bits_of(const SymbolRow& row) const {
    Words bits(static_cast<std::size_t>(problem_.words()), 0);
    for (const int symbol : row) put(bits.data(), symbol);
    return bits;
  }

  void refuse_what_is_too_large() const;
  void decide_values();
  void decide_pairs();
  void take_given(Greedy& greedy, Targets& targets);
  bool repair(SymbolRow& row, int& changed);
  void first_answers();
  std::vector<SymbolRow> orthogonal_pattern(int order) const;
  void search();
  void put_in_order();
  void list_excluded();

  const Model& model_;
  const Options& options_;
  Problem problem_;
  Oracle oracle_;
  std::vector<Tuples> layers_;
  double combinations_ = 0;
  SymbolCost cost_;
  std::vector<SymbolRow>
      given_;  // the required rows and the previous rows that are kept, in that order
  std::vector<PlannedRow> given_origin_;
  std::vector<std::vector<char>> frozen_;
  std::vector<Greedy::Unreachable> unreachable_;
  std::vector<SymbolRow> rows_;
  Result result_;
};

[[noreturn]] void too_large(const std::string& what, const std::string& got,
                            const std::string& want) {
  throw matrix::InputError(
      {what, got, want, "the answer would not fit the memory",
       "lower the strength, or give only a group of parameters the higher one"});
}

std::string rounded(double number) {
  return number < 1e15 ? std::to_string(static_cast<long long>(number)) : "more than 10^15";
}

void Part::refuse_what_is_too_large() const {
  double bytes = 0;
  for (std::size_t layer = 0; layer < layers_.size(); ++layer) {
    const Tuples& tuples = layers_[layer];
    // Two planes of bits; and for each choice of columns the number that is left and an entry in
    // the queue.
    double choices = 1;
    for (int slot = 0; slot < tuples.strength(); ++slot)
      choices = choices *
                static_cast<double>(tuples.columns().size() - static_cast<std::size_t>(slot)) /
                (slot + 1);
    bytes += 16.0 * static_cast<double>(tuples.key_count()) * tuples.words() + 24.0 * choices;
  }
  if (bytes > options_.memory_bytes)
    too_large("the model is too large for this strength",
              rounded(combinations_) + " combinations, about " + rounded(bytes / 1e6) + " MB",
              rounded(options_.memory_bytes / 1e6) + " MB or less");
}

void Part::decide_values() {
  RowBuilder builder(problem_, oracle_);
  std::vector<int> order(static_cast<std::size_t>(problem_.columns()));
  std::iota(order.begin(), order.end(), 0);
  std::vector<char> seen(static_cast<std::size_t>(problem_.symbols()), 0);
  SymbolRow row(order.size());
  const auto unseen = [&](int column, const Domains& domains, const int*) {
    for (int symbol = problem_.first(column); symbol < problem_.first(column + 1); ++symbol)
      if (domains.can(symbol) && !seen[static_cast<std::size_t>(symbol)]) return symbol;
    return domains.first(column);
  };
  for (int symbol = 0; symbol < problem_.symbols(); ++symbol) {
    if (seen[static_cast<std::size_t>(symbol)] || !problem_.constrained(symbol)) continue;
    if (!builder.build({symbol}, order, unseen, row.data())) {
      problem_.ban(symbol);
      continue;
    }
    for (const int each : row) seen[static_cast<std::size_t>(each)] = 1;
  }
}

void Part::decide_pairs() {
  // Larger combinations are judged by their pairs first, which decide nearly all of them without
  // the oracle.
  if (std::all_of(layers_.begin(), layers_.end(),
                  [](const Tuples& tuples) { return tuples.strength() <= 2; }))
    return;
  if (model_.constraints.empty()) return;
  std::vector<int> columns(static_cast<std::size_t>(problem_.visible()));
  std::iota(columns.begin(), columns.end(), 0);
  if (columns.size() < 2) return;
  const std::vector<Tuples> pairs{Tuples(problem_, columns, 2)};
  Targets targets(problem_, pairs);
  Greedy greedy(problem_, pairs, oracle_, Random(stream(options_.seed, 0, 0)));
  std::vector<SymbolRow> rows;
  greedy.fill(targets, 1, {}, {}, rows);
}

bool Part::repair(SymbolRow& row, int& changed) {
  RowBuilder builder(problem_, oracle_);
  Random random(stream(options_.seed, 3, 0));
  std::vector<int> order(row.size());
  std::iota(order.begin(), order.end(), 0);
  SymbolRow made(row.size()), best;
  changed = std::numeric_limits<int>::max();
  const auto judge = [&] {
    int differs = 0;
    for (int column = 0; column < problem_.visible(); ++column)
      differs +=
          row[static_cast<std::size_t>(column)] >= 0 &&
                  row[static_cast<std::size_t>(column)] != made[static_cast<std::size_t>(column)]
              ? 1
              : 0;
    if (differs >= changed) return;
    changed = differs;
    best = made;
  };
  const auto keep = [&](int column, const Domains& domains, const int*) {
    const int now = row[static_cast<std::size_t>(column)];
    return now >= 0 && domains.can(now) ? now : domains.first(column);
  };
  // Repair a row: first keep all cells, then leave each one free, then add the cells in random
  // orders, where those that come first stay.
  for (int column = -1; column < problem_.visible() && changed > 0; ++column) {
    std::vector<int> fixed;
    for (int other = 0; other < problem_.visible(); ++other)
      if (other != column && row[static_cast<std::size_t>(other)] >= 0)
        fixed.push_back(row[static_cast<std::size_t>(other)]);
    if (builder.build(fixed, order, keep, made.data())) judge();
    if (changed <= 1 && column >= 0) break;
  }
  for (int attempt = 0; attempt < kRepairTries && changed > 1; ++attempt) {
    for (std::size_t at = order.size(); at > 1; --at)
      std::swap(order[at - 1], order[static_cast<std::size_t>(random.below(static_cast<int>(at)))]);
    if (builder.build({}, order, keep, made.data())) judge();
  }
  if (changed > kMostChangedCells) return false;
  row = best;
  return true;
}

void Part::take_given(Greedy& greedy, Targets& targets) {
  const auto symbols_of = [&](const Row& row) {
    SymbolRow symbols(static_cast<std::size_t>(problem_.columns()), -1);
    for (std::size_t column = 0; column < row.size(); ++column)
      if (row[column] != kAny)
        symbols[column] = problem_.first(static_cast<int>(column)) + row[column];
    return symbols;
  };
  const auto add = [&](const SymbolRow& row, std::vector<char> frozen, Origin origin,
                       std::size_t index, int changed) {
    given_.push_back(row);
    frozen_.push_back(std::move(frozen));
    given_origin_.push_back({{}, origin, static_cast<int>(index), changed});
    targets.cover(row.data(), bits_of(row).data());
  };
  for (std::size_t index = 0; index < options_.required.size(); ++index) {
    std::vector<int> fixed;
    std::vector<char> frozen(static_cast<std::size_t>(problem_.columns()), 0);
    for (const int symbol : symbols_of(options_.required[index]))
      if (symbol >= 0) {
        fixed.push_back(symbol);
        frozen[static_cast<std::size_t>(problem_.column_of(symbol))] = 1;
      }
    SymbolRow row(static_cast<std::size_t>(problem_.columns()));
    if (!greedy.build(targets, fixed, row)) {
      Cells cells;
      std::string ids;
      for (const int symbol : fixed)
        cells.push_back(
            {problem_.column_of(symbol), symbol - problem_.first(problem_.column_of(symbol))});
      for (const int constraint : oracle_.reason(cells))
        ids +=
            (ids.empty() ? "" : ", ") + model_.constraints[static_cast<std::size_t>(constraint)].id;
      throw matrix::InputError({"required row " + std::to_string(index + 1) + " is in no valid row",
                                "", "cells that all constraints allow together",
                                ids.empty() ? "" : "it breaks " + ids,
                                "change the row or the constraints"});
    }
    // Any row fulfils a required row without cells, but it stays a row of its own.
    if (fixed.empty()) frozen.assign(frozen.size(), 1);
    add(row, std::move(frozen), Origin::required, index, 0);
  }
  for (std::size_t index = 0; index < options_.previous.size(); ++index) {
    SymbolRow row = symbols_of(options_.previous[index]);
    const SymbolRow asked = row;
    int changed = 0;
    const bool says_nothing =
        std::all_of(row.begin(), row.end(), [](int symbol) { return symbol < 0; });
    if (says_nothing || !repair(row, changed)) {
      result_.dropped.push_back(static_cast<int>(index));
      continue;
    }
    // Cells that the earlier plan did not have may change.
    std::vector<char> frozen(row.size(), 0);
    std::vector<int> fixed;
    for (int column = 0; column < problem_.visible(); ++column)
      if (asked[static_cast<std::size_t>(column)] >= 0) {
        frozen[static_cast<std::size_t>(column)] = 1;
        fixed.push_back(row[static_cast<std::size_t>(column)]);
      }
    greedy.build(targets, fixed, row);
    add(row, std::move(frozen), Origin::previous, index, changed);
  }
}

std::vector<SymbolRow> Part::orthogonal_pattern(int order) const {
  const Tuples& tuples = layers_.front();
  const auto strength = static_cast<std::size_t>(tuples.strength());
  std::vector<int> columns;
  for (const int column : tuples.columns())
    if (problem_.size(column) <= order) columns.push_back(column);
  std::stable_sort(columns.begin(), columns.end(),
                   [&](int left, int right) { return problem_.size(left) > problem_.size(right); });
  columns.resize(std::min(columns.size(), static_cast<std::size_t>(order) + 1));
  std::vector<SymbolRow> pattern;
  if (columns.size() <= strength) return pattern;
  for (const std::vector<int>& values : orthogonal_array(order, tuples.strength())) {
    SymbolRow row(static_cast<std::size_t>(problem_.columns()), -1);
    std::size_t decided = 0;
    for (std::size_t at = 0; at < columns.size(); ++at) {
      // In a column with fewer values than the array has, the array's lowest values are left open:
      // so the first rows of the array fix least, and may turn out not to be needed.
      const int value = values[at] - (order - problem_.size(columns[at]));
      if (value < 0) continue;
      row[static_cast<std::size_t>(columns[at])] = problem_.first(columns[at]) + value;
      ++decided;
    }
    if (decided >= strength) pattern.push_back(std::move(row));
  }
  return pattern;
}

void Part::first_answers() {
  const int candidates = static_cast<int>(std::clamp(
      kCandidateBudget / std::max(1.0, combinations_), 1.0, static_cast<double>(kCandidates)));
  const int starts = options_.starts > 0
                         ? options_.starts
                         : static_cast<int>(std::clamp(kStartBudget / std::max(1.0, combinations_),
                                                       1.0, static_cast<double>(kStarts)));
  {
    Targets targets(problem_, layers_);
    if (targets.most() > kMostRows)
      too_large("the answer has too many rows", std::to_string(targets.most()) + " or more",
                rounded(kMostRows) + " or fewer");
    Greedy greedy(problem_, layers_, oracle_, Random(stream(options_.seed, 1, 0)));
    take_given(greedy, targets);
    rows_ = given_;
    greedy.fill(targets, candidates, cost_, {}, rows_);
    unreachable_ = greedy.unreachable();
  }
  if (options_.progress) options_.progress({rows_.size(), 0});

  Targets targets(problem_, layers_);
  for (const Greedy::Unreachable& none : unreachable_) targets.close(none.layer, none.tuple);
  result_.at_least = targets.most();
  for (std::size_t layer = 0; layer < layers_.size(); ++layer)
    result_.demands[layer].valid = targets.open_count(layer);
  const std::size_t given = given_.size();
  if (given == 0 && static_cast<std::int64_t>(rows_.size()) <= result_.at_least && !cost_) return;
  for (const SymbolRow& row : given_) targets.cover(row.data(), bits_of(row).data());

  std::vector<std::vector<SymbolRow>> answers(static_cast<std::size_t>(starts));
  answers[0] = std::move(rows_);
  spread(starts - 1, options_.threads, [&](int index) {
    if (options_.stop && options_.stop()) return;
    Problem problem = problem_;
    Oracle oracle(model_);
    Greedy greedy(problem, layers_, oracle,
                  Random(stream(options_.seed, 1, static_cast<std::uint64_t>(index) + 1)));
    Targets left = targets;
    std::vector<SymbolRow> rows = given_;
    if (greedy.fill(left, candidates, cost_, options_.stop, rows))
      answers[static_cast<std::size_t>(index) + 1] = std::move(rows);
  });
  std::size_t best = 0;
  for (std::size_t at = 1; at < answers.size(); ++at)
    if (!answers[at].empty() && total(answers[at]) < total(answers[best])) best = at;
  // Try orthogonal arrays whose order suits the larger columns and whose rows are not too many.
  if (layers_.size() == 1 && layers_.front().strength() >= 2) {
    std::vector<int> sizes;
    for (const int column : layers_.front().columns()) sizes.push_back(problem_.size(column));
    std::sort(sizes.rbegin(), sizes.rend());
    const auto strength = static_cast<std::size_t>(layers_.front().strength());
    for (int order = prime_power_from(sizes[std::min(strength, sizes.size()) - 1]);
         order > 0 &&
         std::pow(order, strength) <= kPatternSlack * static_cast<double>(answers[best].size());
         order = prime_power_from(order + 1)) {
      if (static_cast<int>(strength) > order + 1) continue;
      Greedy greedy(problem_, layers_, oracle_,
                    Random(stream(options_.seed, 4, static_cast<std::uint64_t>(order))));
      Targets left = targets;
      std::vector<SymbolRow> rows = given_;
      if (!greedy.fill_along(orthogonal_pattern(order), left, options_.stop, rows) ||
          !greedy.fill(left, candidates, cost_, options_.stop, rows))
        break;
      answers.push_back(std::move(rows));
      if (total(answers.back()) < total(answers[best])) best = answers.size() - 1;
    }
  }
  rows_ = std::move(answers[best]);
  if (best > 0 && options_.progress) options_.progress({rows_.size(), 0});
}

void Part::search() {
  const double bytes = Search::bytes(problem_, layers_, rows_.size()) *
                       std::min(options_.searches, options_.threads);
  if (bytes > options_.memory_bytes || rows_.size() > std::numeric_limits<std::uint16_t>::max()) {
    result_.searched = false;
    return;
  }
  const int enough =
      static_cast<int>(std::min<std::int64_t>(result_.at_least, std::numeric_limits<int>::max()));
  if (options_.steps <= 0 || (static_cast<int>(rows_.size()) <= enough && !cost_)) return;
  struct Outcome {
    std::vector<SymbolRow> rows;
    double cost = 0;
    std::int64_t steps = 0;
  };
  std::vector<Outcome> outcomes(static_cast<std::size_t>(options_.searches));
  spread(options_.searches, options_.threads, [&](int index) {
    Oracle oracle(model_);
    Search search(problem_, layers_, oracle,
                  Random(stream(options_.seed, 2, static_cast<std::uint64_t>(index))));
    search.start(rows_, frozen_, cost_);
    constexpr std::int64_t kReport = 256;  // steps between two reports of the best answer
    std::size_t reported = rows_.size();
    for (bool more = true; more && search.steps() < options_.steps;) {
      more = search.run(std::min(kReport, options_.steps - search.steps()), enough, options_.stop);
      if (options_.progress && options_.searches == 1 && search.best().size() < reported) {
        reported = search.best().size();
        options_.progress({reported, search.steps()});
      }
    }
    outcomes[static_cast<std::size_t>(index)] = {search.best(), total(search.best()),
                                                 search.steps()};
  });
  std::size_t best = 0;
  for (std::size_t at = 0; at < outcomes.size(); ++at) {
    result_.steps += outcomes[at].steps;
    if (outcomes[at].cost < outcomes[best].cost) best = at;
  }
  rows_ = std::move(outcomes[best].rows);
}

void Part::put_in_order() {
  // The given rows come first, where the search leaves them. Of the others, the row that adds most
  // comes next, each time. What a row adds can only shrink, so an old figure is an upper bound and
  // most rows need no new count.
  result_.cost = total(rows_);
  Targets targets(problem_, layers_);
  for (std::size_t at = 0; at < given_.size(); ++at) {
    PlannedRow row = given_origin_[at];
    row.cells = shown(rows_[at]);
    result_.rows.push_back(std::move(row));
    targets.cover(rows_[at].data(), bits_of(rows_[at]).data());
  }
  const std::vector<SymbolRow> fresh(rows_.begin() + static_cast<std::ptrdiff_t>(given_.size()),
                                     rows_.end());
  Neighbours neighbours(layers_);
  const auto adds = [&](const SymbolRow& row) {
    const Words bits = bits_of(row);
    double sum = 0;
    for (int column = 0; column < problem_.visible(); ++column) {
      neighbours.look_to_count(row.data(), column);
      sum += targets.gain(neighbours, row[static_cast<std::size_t>(column)], bits.data());
    }
    return sum;
  };
  struct Entry {
    double adds;
    std::size_t at;
    bool operator<(const Entry& other) const {
      return adds != other.adds ? adds < other.adds : at > other.at;
    }
  };
  std::priority_queue<Entry> queue;
  double work = 0, row_combinations = 0;
  for (const Tuples& tuples : layers_) {
    double choices = 1;
    for (int slot = 0; slot < tuples.strength(); ++slot)
      choices = choices *
                static_cast<double>(tuples.columns().size() - static_cast<std::size_t>(slot)) /
                (slot + 1);
    row_combinations += choices;
  }
  for (std::size_t at = 0; at < fresh.size(); ++at)
    queue.push({std::numeric_limits<double>::infinity(), at});
  while (!queue.empty()) {
    Entry top = queue.top();
    queue.pop();
    if (work < kOrderBudget) {
      const double now = adds(fresh[top.at]);
      work += row_combinations;
      if (!queue.empty() && now < queue.top().adds) {
        queue.push({now, top.at});
        continue;
      }
      targets.cover(fresh[top.at].data(), bits_of(fresh[top.at]).data());
    }
    result_.rows.push_back({shown(fresh[top.at]), Origin::fresh, -1, 0});
  }
}

void Part::list_excluded() {
  const auto cell = [&](int symbol) {
    return Cell{problem_.column_of(symbol), symbol - problem_.first(problem_.column_of(symbol))};
  };
  const auto add = [&](Cells cells) {
    if (result_.excluded.size() < kMostExcluded)
      result_.excluded.push_back(std::move(cells));
    else
      ++result_.excluded_left_out;
  };
  const int shown_symbols = problem_.first(problem_.visible());
  const auto allowed = [&](int symbol) { return has(problem_.allowed().data(), symbol); };
  for (int symbol = 0; symbol < shown_symbols; ++symbol)
    if (!allowed(symbol)) add({cell(symbol)});
  for (int symbol = 0; symbol < shown_symbols; ++symbol)
    if (allowed(symbol))
      for_each_bit(problem_.forbidden(symbol), symbol, static_cast<std::size_t>(problem_.words()),
                   [&](int other) {
                     if (other < shown_symbols && allowed(other)) add({cell(symbol), cell(other)});
                   });
  for (const Greedy::Unreachable& none : unreachable_) {
    const int strength = layers_[none.layer].strength();
    if (strength <= 2) continue;
    Cells cells;
    for (int at = 0; at < strength; ++at)
      cells.push_back(cell(none.tuple[static_cast<std::size_t>(at)]));
    add(std::move(cells));
  }
}

Result Part::run() {
  refuse_what_is_too_large();
  decide_values();
  decide_pairs();
  first_answers();
  search();
  put_in_order();
  list_excluded();
  return std::move(result_);
}

}  // namespace

Result cover_part(const Model& model, const std::vector<PartDemand>& demands,
                  const Options& options) {
  return Part(model, demands, options).run();
}

}  // namespace graphproof::cover

#include "matrix/cover/model/diagram.h"

#include <algorithm>
#include <cassert>
#include <map>

namespace graphproof::cover {
namespace {

std::uint64_t mixed(std::uint64_t hash, std::uint64_t value) {
  hash ^= value + 0x9e3779b97f4a7c15 + (hash << 6) + (hash >> 2);
  return hash * 0xff51afd7ed558ccd;
}

struct VectorHash {
  std::size_t operator()(const std::vector<int>& key) const {
    std::uint64_t hash = 0;
    for (const int value : key) hash = mixed(hash, static_cast<std::uint64_t>(value));
    return static_cast<std::size_t>(hash);
  }
};

constexpr std::size_t kFirstTable = 1 << 10;

}  // namespace

/// A clause as the values of each level that make it true.
struct Diagram::ClauseForm {
  std::vector<std::pair<int, std::vector<char>>> levels;  // ascending
};

/// Turns clauses into a diagram, level after level. The clauses that are not true yet identify a
/// remainder.
class Diagram::Compilation {
 public:
  Compilation(Diagram& diagram, const std::vector<Clause>& clauses, std::int64_t& steps)
      : diagram_(diagram), steps_(steps) {
    for (const Clause& clause : clauses) {
      std::map<int, std::vector<char>> levels;
      bool always = false;
      for (const Literal& literal : clause) {
        const auto size = static_cast<std::size_t>(diagram.size(literal.parameter));
        std::vector<char>& fulfils = levels.try_emplace(literal.parameter, size, 0).first->second;
        if (literal.equal)
          fulfils[static_cast<std::size_t>(literal.value)] = 1;
        else
          for (std::size_t value = 0; value < size; ++value)
            fulfils[value] |= value != static_cast<std::size_t>(literal.value);
      }
      for (const auto& [level, fulfils] : levels)
        always = always || std::find(fulfils.begin(), fulfils.end(), 0) == fulfils.end();
      if (!always) clauses_.push_back({{levels.begin(), levels.end()}});
    }
  }

  Node run() {
    std::vector<int> open;
    for (std::size_t clause = 0; clause < clauses_.size(); ++clause) {
      if (clauses_[clause].levels.empty()) return kNothing;
      open.push_back(static_cast<int>(clause));
    }
    return below(0, open);
  }

 private:
  using Entry = std::pair<int, std::vector<char>>;

  const Entry* entry_at(int clause, int level) const {
    const auto& levels = clauses_[static_cast<std::size_t>(clause)].levels;
    const auto found =
        std::lower_bound(levels.begin(), levels.end(), level,
                         [](const Entry& one, int wanted) { return one.first < wanted; });
    return found != levels.end() && found->first == level ? &*found : nullptr;
  }

  int next_level(int clause, int from) const {
    const auto& levels = clauses_[static_cast<std::size_t>(clause)].levels;
    return std::lower_bound(levels.begin(), levels.end(), from,
                            [](const Entry& one, int wanted) { return one.first < wanted; })
        ->first;
  }

  Node below(int from, const std::vector<int>& open) {
    if (open.empty()) return kEverything;
    int level = next_level(open.front(), from);
    for (const int clause : open) level = std::min(level, next_level(clause, from));
    std::vector<int> key = open;
    key.push_back(level);
    if (const auto known = known_.find(key); known != known_.end()) return known->second;

    const int size = diagram_.size(level);
    steps_ -= size * static_cast<std::int64_t>(open.size());
    if (steps_ < 0) throw OutOfSteps{};
    std::vector<const Entry*> entries;
    for (const int clause : open) entries.push_back(entry_at(clause, level));
    std::vector<Node> children;
    std::vector<int> left, before;
    for (int value = 0; value < size; ++value) {
      left.clear();
      bool possible = true;
      for (std::size_t i = 0; i < open.size() && possible; ++i) {
        if (entries[i] == nullptr)
          left.push_back(open[i]);
        else if (!entries[i]->second[static_cast<std::size_t>(value)]) {
          left.push_back(open[i]);
          possible = clauses_[static_cast<std::size_t>(open[i])].levels.back().first > level;
        }
      }
      // Neighbouring values often leave the same clauses.
      if (!possible)
        children.push_back(kNothing);
      else if (value > 0 && children.back() != kNothing && left == before)
        children.push_back(children.back());
      else
        children.push_back(below(level + 1, left));
      before = left;
      if (level >= diagram_.levels() && children.back() != kNothing)
        return known_[key] = kEverything;  // some hidden value fulfils the clauses
    }
    return known_[key] = level >= diagram_.levels() ? kNothing : diagram_.make(level, children);
  }

  Diagram& diagram_;
  std::int64_t& steps_;
  std::vector<ClauseForm> clauses_;
  std::unordered_map<std::vector<int>, Node, VectorHash> known_;
};

Diagram::Diagram(std::vector<int> sizes, int levels)
    : sizes_(std::move(sizes)), levels_(levels), table_(kFirstTable, 0) {
  rows_from_.assign(static_cast<std::size_t>(levels_) + 1, 1);
  for (int level = levels_ - 1; level >= 0; --level)
    rows_from_[static_cast<std::size_t>(level)] =
        rows_from_[static_cast<std::size_t>(level) + 1] * static_cast<long double>(size(level));
  for (const Node terminal : {kNothing, kEverything}) {
    nodes_.push_back({levels_, 0});
    counts_.push_back(static_cast<long double>(terminal));
  }
}

long double Diagram::rows_between(int from, int to) const {
  if (to == levels_) return rows_from_[static_cast<std::size_t>(from)];
  long double rows = 1;
  for (int level = from; level < to; ++level) rows *= static_cast<long double>(size(level));
  return rows;
}

Diagram::Node Diagram::make(int level, std::span<const Node> children) {
  if (std::all_of(children.begin(), children.end(),
                  [&](Node child) { return child == children.front(); }))
    return children.front();
  std::uint64_t hash = static_cast<std::uint64_t>(level);
  for (const Node child : children) hash = mixed(hash, child);
  for (std::size_t at = hash & (table_.size() - 1);; at = (at + 1) & (table_.size() - 1)) {
    const Node known = table_[at];
    if (known == 0) {
      const Node made = static_cast<Node>(nodes_.size());
      table_[at] = made;
      nodes_.push_back({level, children_.size()});
      children_.insert(children_.end(), children.begin(), children.end());
      long double count = 0;
      for (const Node child : children) count += count_below(child, level + 1);
      counts_.push_back(count);
      if (nodes_.size() * 2 > table_.size()) grow_table();
      return made;
    }
    if (nodes_[known].level == level &&
        std::equal(children.begin(), children.end(),
                   children_.begin() + static_cast<std::ptrdiff_t>(nodes_[known].first_child)))
      return known;
  }
}

void Diagram::grow_table() {
  table_.assign(table_.size() * 4, 0);
  for (Node node = 2; node < nodes_.size(); ++node) {
    std::uint64_t hash = static_cast<std::uint64_t>(level(node));
    for (const Node child : children(node)) hash = mixed(hash, child);
    std::size_t at = hash & (table_.size() - 1);
    while (table_[at] != 0) at = (at + 1) & (table_.size() - 1);
    table_[at] = node;
  }
}

std::optional<Diagram::Node> Diagram::rows_of(const std::vector<Clause>& clauses,
                                              std::int64_t& steps) {
  try {
    return Compilation(*this, clauses, steps).run();
  } catch (const OutOfSteps&) {
    return std::nullopt;
  }
}

std::optional<Diagram::Node> Diagram::intersection(Node left, Node right, std::int64_t& steps) {
  met_.clear();
  try {
    return meet(left, right, steps);
  } catch (const OutOfSteps&) {
    return std::nullopt;
  }
}

Diagram::Node Diagram::meet(Node left, Node right, std::int64_t& steps) {
  if (left == kNothing || right == kNothing) return kNothing;
  if (left == kEverything || left == right) return right;
  if (right == kEverything) return left;
  if (left > right) std::swap(left, right);
  const std::uint64_t key = std::uint64_t{left} << 32 | right;
  if (const auto known = met_.find(key); known != met_.end()) return known->second;
  const int at = std::min(level(left), level(right)), count = size(at);
  steps -= count;
  if (steps < 0) throw OutOfSteps{};
  std::vector<Node> made(static_cast<std::size_t>(count));
  for (std::size_t value = 0; value < made.size(); ++value) {
    // Read the children each time: making nodes may move them in memory.
    const Node left_child = level(left) == at ? children(left)[value] : left,
               right_child = level(right) == at ? children(right)[value] : right;
    made[value] = meet(left_child, right_child, steps);
  }
  return met_[key] = make(at, made);
}

}  // namespace graphproof::cover

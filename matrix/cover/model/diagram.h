// Sets of rows as decision diagrams: level after level a node says where each value leads, and
// there is one node for each different remainder, so that sets of billions of rows are a few
// thousand nodes. Diagrams of one object share nodes.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "matrix/cover/model/model.h"

namespace graphproof::cover {

class Diagram {
 public:
  using Node = std::uint32_t;
  static constexpr Node kNothing = 0, kEverything = 1;

  /// `sizes`: how many values each level has; the first `levels` are a row's, the others hidden.
  /// Level numbers stand for parameters in the clauses below.
  Diagram(std::vector<int> sizes, int levels);

  /// The rows that fulfil all clauses for some choice of hidden values. Nothing where that takes
  /// more than `steps`; what was used is taken off.
  std::optional<Node> rows_of(const std::vector<Clause>& clauses, std::int64_t& steps);
  /// The rows of both.
  std::optional<Node> intersection(Node left, Node right, std::int64_t& steps);

  /// Exact below 2^64, then rounded to 64 binary digits.
  long double count(Node node) const { return counts_[node] * rows_between(0, level(node)); }
  /// The same of what follows below `from`, which is no deeper than the node.
  long double count_below(Node node, int from) const {
    return counts_[node] * rows_between(from, level(node));
  }

  int levels() const { return levels_; }
  int size(int level) const { return sizes_[static_cast<std::size_t>(level)]; }
  /// Where the node decides; levels above it are free.
  int level(Node node) const { return nodes_[node].level; }
  /// REQUIRES: the node is not terminal. A child for each value of its level.
  std::span<const Node> children(Node node) const {
    return {children_.data() + nodes_[node].first_child,
            static_cast<std::size_t>(size(level(node)))};
  }
  std::size_t node_count() const { return nodes_.size(); }

 private:
  struct Entry {
    int level;
    std::size_t first_child;
  };
  struct ClauseForm;
  class Compilation;
  struct OutOfSteps {};

  Node make(int level, std::span<const Node> children);
  Node meet(Node left, Node right, std::int64_t& steps);
  long double rows_between(int from, int to) const;
  void grow_table();

  std::vector<int> sizes_;
  int levels_;
  std::vector<long double> rows_from_;  // of each level: rows of it and those behind
  std::vector<Entry> nodes_;            // a child has a smaller index than its parents
  std::vector<Node> children_;
  std::vector<long double> counts_;  // rows from the node's own level on
  std::vector<Node> table_;          // hashed by level and children; 0 is empty
  std::unordered_map<std::uint64_t, Node> met_;
};

}  // namespace graphproof::cover

// Sets of rows as decision diagrams. A node decides one level: for each of its values it leads to
// the node of the rows that remain. Equal remainders share a node, so a set of billions of rows
// takes a few thousand nodes.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "matrix/cover/model/model.h"

namespace graphproof::cover {

/// Nodes of any number of sets of rows, which share them.
class Diagram {
 public:
  /// A set of rows. kNothing and kEverything are the terminal nodes.
  using Node = std::uint32_t;
  static constexpr Node kNothing = 0, kEverything = 1;

  /// `sizes[i]` is the number of values of level i. The first `levels` levels make up a row, the
  /// others are hidden. Clauses name levels as their parameters.
  Diagram(std::vector<int> sizes, int levels);

  /// The rows that fulfil all clauses for some choice of hidden values. Subtracts the steps that it
  /// takes from `steps`; nothing if these do not suffice.
  std::optional<Node> rows_of(const std::vector<Clause>& clauses, std::int64_t& steps);
  /// The rows of both sets; nothing if `steps` do not suffice.
  std::optional<Node> intersection(Node left, Node right, std::int64_t& steps);

  /// The number of rows: exact below 2^64, otherwise rounded to 64 binary digits.
  long double count(Node node) const { return counts_[node] * rows_between(0, level(node)); }
  /// The number of ways to choose the levels from `from` on. REQUIRES: from <= level(node).
  long double count_below(Node node, int from) const {
    return counts_[node] * rows_between(from, level(node));
  }

  int levels() const { return levels_; }
  int size(int level) const { return sizes_[static_cast<std::size_t>(level)]; }
  /// The level that the node decides; levels before it are free.
  int level(Node node) const { return nodes_[node].level; }
  /// A child for each value of the node's level. REQUIRES: the node is not terminal.
  std::span<const Node> children(Node node) const {
    return {children_.data() + nodes_[node].first_child,
            static_cast<std::size_t>(size(level(node)))};
  }
  std::size_t node_count() const { return nodes_.size(); }

 private:
  /// A node; its children are consecutive in children_.
  struct Entry {
    int level;
    std::size_t first_child;
  };
  struct ClauseForm;
  class Compilation;
  /// Thrown inside when the steps do not suffice.
  struct OutOfSteps {};

  Node make(int level, std::span<const Node> children);
  Node meet(Node left, Node right, std::int64_t& steps);
  long double rows_between(int from, int to) const;
  void grow_table();

  std::vector<int> sizes_;
  int levels_;
  std::vector<long double> rows_from_;  // for each level: the rows of it and the levels after it
  std::vector<Entry> nodes_;            // a child has a smaller index than its parents
  std::vector<Node> children_;
  std::vector<long double> counts_;  // for each node: the rows from its level on
  std::vector<Node> table_;          // nodes, hashed by level and children; 0 is empty
  std::unordered_map<std::uint64_t, Node> met_;
};

}  // namespace graphproof::cover

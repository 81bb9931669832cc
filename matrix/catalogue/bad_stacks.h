// Versions of the software stack that are known to be bad for a use of CUDA graphs
// (matrix/tables/bad_stacks.json). Who knows a process or a machine says which versions it has and
// whether a use holds.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "matrix/input/document.h"
#include "matrix/input/version.h"

namespace graphproof::matrix {

/// What a process does with its stack; the table's comment explains each.
enum class StackUse {
  captured_communication,
  spans_nodes,
  expandable_segments,
  graph_registration,
  grouped_products,
};
std::string_view name(StackUse use);

/// A row of the table.
struct BadStack {
  std::string id, what;
  std::string component;                // torch, driver, libnccl, a Python package
  std::optional<Version> from, before;  // the bad versions: from <= version < before
  std::vector<StackUse> when;           // all of them
  std::string reported_by;              // the check that reports it
  std::string why, next, source;

  bool covers(const Version& version) const;
  /// "libnccl before 2.30.4 with captured_communication and spans_nodes"
  std::string conditions() const;
};

/// The rows, in table order.
class BadStackTable {
 public:
  /// Throws InputError.
  static BadStackTable parse(const Document& document);
  const std::vector<BadStack>& rows() const { return rows_; }

 private:
  std::vector<BadStack> rows_;
};

}  // namespace graphproof::matrix

// Versions of the software stack that are known to be bad for a use of CUDA graphs
// (matrix/tables/bad_stacks.json). Who knows a process, a machine or a configuration says which
// versions it has and whether a use holds: checks of watched runs, `doctor` and `check`.
#pragma once

#include <functional>
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

/// The version of a component; nothing if it is not known.
using VersionOf = std::function<std::optional<Version>(const std::string& component)>;
/// Whether a use holds; nothing if it is not known.
using UseHolds = std::function<std::optional<bool>(StackUse use)>;

/// A row that a stack meets, or that it may meet.
struct BadStackMet {
  std::string got;                   // "libnccl 2.28.9"; the component alone, if not its version
  std::vector<std::string> unknown;  // the component and the uses of which is not known enough
};

/// A row of the table.
struct BadStack {
  std::string id, what;
  std::string component;                // torch, driver, libnccl, a Python package
  std::optional<Version> from, before;  // the bad versions: from <= version < before
  std::vector<StackUse> when;           // all of them
  std::string reported_by;              // the check that reports it
  std::string why, next, source;

  bool covers(const Version& version) const;
  /// Nothing if the version is none of the bad ones, or if a use is known not to hold.
  std::optional<BadStackMet> met(const VersionOf& version_of, const UseHolds& holds) const;
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

// Applies a dialect's rules to a configuration in upstream's order. Errors are collected, fixes
// rewrite values for the rules that come after them, and the error that upstream would stop at is
// marked.
#pragma once

#include <nlohmann/json.hpp>

#include <vector>

#include "matrix/dialect/dialect.h"
#include "matrix/dialect/finding.h"

namespace graphproof::dialect {

/// The result of a check.
struct Verdict {
  bool accepted = true;           // whether no stage of upstream is known to refuse it
  std::vector<Finding> findings;  // in upstream's order: reading, cli, config, construct, run
  Configuration effective;        // with all fixes applied

  /// {"accepted", "undecided", "findings", "effective"}; `undecided` has the ids of errors that a
  /// fact which was not given would decide.
  nlohmann::json json() const;
};

/// Checks what was read. A command line goes through the stages cli, config, construct and run; a
/// configuration object begins with config.
Verdict check(const Dialect& dialect, Reading reading);
/// As check(), with only the rules that refuse or rewrite an older spelling: the effective
/// configuration has today's spelling.
Verdict check_spelling(const Dialect& dialect, Reading reading);

/// The result of one rule.
struct Applied {
  /// Of several parts that fire: errors go before other findings, decided ones before undecided
  /// ones.
  std::optional<Finding> finding;
  /// The parts that fire; the flag is true if that is undecided.
  std::vector<std::pair<const Part*, bool>> fired;
};
/// Applies one rule to a configuration.
Applied apply(const Rule& rule, Stage stage, const Configuration& configuration);

}  // namespace graphproof::dialect

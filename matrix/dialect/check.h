// Applies a dialect's rules to a configuration in upstream's order: errors are collected, fixes
// rewrite values for the rules behind them, and the error that upstream would stop at is marked.
#pragma once

#include <nlohmann/json.hpp>

#include <vector>

#include "matrix/dialect/dialect.h"
#include "matrix/dialect/finding.h"

namespace graphproof::dialect {

struct Verdict {
  bool accepted = true;           // upstream's parsing and configuration let it pass
  std::vector<Finding> findings;  // in upstream's order: reading, cli, config, construct, run
  Configuration effective;        // after every fix

  /// {"accepted", "findings", "effective"}.
  nlohmann::json json() const;
};

/// A command line goes through the stages cli, config, construct and run; a configuration object
/// begins at config.
Verdict check(const Dialect& dialect, Reading reading);
/// Only what refuses or rewrites an older spelling: what the configuration says in today's words.
Verdict check_spelling(const Dialect& dialect, Reading reading);

/// One rule alone: what it says of a configuration, and which of its parts fired or may have.
struct Applied {
  std::optional<Finding>
      finding;  // an error sooner than anything else, something decided sooner than not
  std::vector<std::pair<const Part*, bool>> fired;  // the flag is true where it is undecided
};
Applied apply(const Rule& rule, Stage stage, const Configuration& configuration);

}  // namespace graphproof::dialect

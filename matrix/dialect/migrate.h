// Rewrites older spellings of graph options: the result is a command line or a configuration that
// means the same and gives no warning upstream.
#pragma once

#include <string>
#include <vector>

#include "matrix/dialect/check.h"

namespace graphproof::dialect {

/// The rewritten input.
struct Migration {
  std::vector<std::string> words;  // the command line
  matrix::Json object;             // the configuration
  std::vector<Finding> notes;      // what was rewritten, or why it can't be
  bool possible =
      true;  // false if the older spelling contradicts itself; then nothing is rewritten
};

/// Rewrites a command line. The options begin at index `begin`; the words before stay as they are.
Migration migrate_command_line(const Dialect& dialect, const std::vector<std::string>& words,
                               std::size_t begin);
Migration migrate_configuration(const Dialect& dialect, const matrix::Document& document);

}  // namespace graphproof::dialect

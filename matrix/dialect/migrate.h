// Today's spelling of older graph options: a command line or a configuration that means the same
// and warns of nothing.
#pragma once

#include <string>
#include <vector>

#include "matrix/dialect/check.h"

namespace graphproof::dialect {

struct Migration {
  std::vector<std::string> words;  // of a command line
  matrix::Json object;             // of a configuration
  std::vector<Finding> notes;      // what was rewritten, or why it can't be
  bool possible = true;  // false: the older spelling contradicts itself; nothing is rewritten then
};

/// `words` from `begin` on are upstream's; those before stay as they are.
Migration migrate_command_line(const Dialect& dialect, const std::vector<std::string>& words,
                               std::size_t begin);
Migration migrate_configuration(const Dialect& dialect, const matrix::Document& document);

}  // namespace graphproof::dialect

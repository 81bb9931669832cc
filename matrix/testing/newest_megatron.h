// For tests: a table that many tests read.
#pragma once

#include "matrix/dialect/dialect.h"

namespace graphproof::dialect {

/// The dialect megatron-lm at its newest version, read once.
inline const Dialect& megatron() {
  static const Dialect dialect = load_dialect("megatron-lm", "");
  return dialect;
}

}  // namespace graphproof::dialect

// For tests.
#pragma once

#include "matrix/dialect/dialect.h"

namespace graphproof::dialect {

/// Megatron-LM's newest version, read once.
inline const Dialect& megatron() {
  static const Dialect dialect = load_dialect("megatron-lm", "");
  return dialect;
}

}  // namespace graphproof::dialect

// For tests: a table that many tests read.
#pragma once

#include "matrix/catalogue/catalogue.h"

namespace graphproof::matrix {

/// The shipped catalogue, read once because that takes a tenth of a second.
inline const Catalogue& catalogue() {
  static const Catalogue loaded = load_catalogue();
  return loaded;
}

}  // namespace graphproof::matrix

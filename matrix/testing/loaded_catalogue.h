// For tests.
#pragma once

#include "matrix/catalogue/catalogue.h"

namespace graphproof::matrix {

/// The shipped catalogue, read once: it takes a tenth of a second.
inline const Catalogue& catalogue() {
  static const Catalogue loaded = load_catalogue();
  return loaded;
}

}  // namespace graphproof::matrix

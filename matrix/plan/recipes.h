// Published training recipes as data (matrix/tables/megatron_bridge.json): the settings of each, at
// its full size.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "matrix/plan/nearest_case.h"

namespace graphproof::matrix {

/// A recipe. `gpu` and `precision` are empty, and `gpus` is 0, if the recipe leaves them open.
struct Recipe {
  std::string name, of, family, task, gpu, precision;
  std::int64_t gpus = 0;
  TrainingValues values;  // under upstream's option names

  bool uses_graphs() const;
};

/// Reads a "graphproof-recipes/1" document. Throws InputError.
std::vector<Recipe> parse_recipes(const Document& document);
/// The shipped recipes. Reading them takes about 10 ms, so call it once, where they are needed.
std::vector<Recipe> shipped_recipes();

}  // namespace graphproof::matrix

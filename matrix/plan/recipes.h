// Published training recipes as data (matrix/tables/megatron_bridge.json): what each asks for, at
// its full size.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "matrix/plan/nearest_case.h"

namespace graphproof::matrix {

struct Recipe {
  std::string name, of, family, task, gpu,
      precision;          // gpu and precision are empty where the recipe does not say them
  std::int64_t gpus = 0;  // 0: not said
  TrainingValues values;  // under upstream's option names

  bool uses_graphs() const;
};

/// "graphproof-recipes/1". Throws InputError.
std::vector<Recipe> parse_recipes(const Document& document);
/// The shipped ones. About 10 ms: call it where they are needed, once.
std::vector<Recipe> shipped_recipes();

}  // namespace graphproof::matrix

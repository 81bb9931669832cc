// Draws valid rows at random, also where the constraints are too entangled to count the rows. This
// is for plans of random cases; a covering array (cover.h) plans which combinations occur.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "matrix/cover/model/model.h"

namespace graphproof::cover {

/// Draws `size` different valid rows; all rows, in an order of chance, if there are no more.
///
/// How a row is drawn: the parameters take their values one after the other, in an order of chance.
/// Each takes the first value, again in an order of chance by the values' weights, that some valid
/// row has together with the values taken before. So rows are not equally likely. A parameter that
/// no constraint names has all of its values equally often, and each value that any valid row has
/// comes first in every (parameters * values)th row on average, however few of all rows have it.
///
/// The rows depend on the model and the seed alone, not on the solver that finds what is valid.
/// REQUIRES: check_model(model) passes.
std::vector<Row> draw_rows(const Model& model, std::size_t size, std::uint64_t seed);

}  // namespace graphproof::cover

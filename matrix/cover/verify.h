// Judges rows independently: it shares only the model and the oracle with the generator. Every row
// must be valid, and every combination that some valid row can have must occur in a row.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "matrix/cover/model/model.h"

namespace graphproof::cover {

/// A row that is not valid.
struct InvalidRow {
  std::size_t index = 0;
  /// The ids of the constraints that it breaks; empty if it only has two negative values.
  std::vector<std::string> broken;
};

/// The result. The lists have at most kMostShown elements; the counts count all.
struct Verification {
  std::vector<InvalidRow> invalid;
  /// Combinations that a valid row can have and no valid row among the given ones has.
  std::vector<Cells> missing;
  std::int64_t invalid_count = 0, missing_count = 0;
  double raw = 0, reachable = 0;  // combinations, summed over the model and its groups
  bool complete() const { return invalid_count == 0 && missing_count == 0; }
};
constexpr std::size_t kMostShown = 100;

/// Judges rows without open cells. Throws InputError if the strength is out of range, or a choice
/// of columns has more combinations than memory allows.
Verification verify(const Model& model, const std::vector<Row>& rows, int strength);

}  // namespace graphproof::cover

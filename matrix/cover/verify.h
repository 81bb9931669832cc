// The independent judge of rows: shares no code with the generator but the model and the oracle.
// Every row must be valid, and every combination that some valid row has must stand in one.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "matrix/cover/model/model.h"

namespace graphproof::cover {

struct InvalidRow {
  std::size_t index = 0;
  std::vector<std::string>
      broken;  // ids of constraints; empty where only two negative values stand together
};

struct Verification {
  std::vector<InvalidRow> invalid;  // up to kMostShown
  std::vector<Cells> missing;  // combinations that a valid row could have and no valid row here
                               // has, up to kMostShown
  std::int64_t invalid_count = 0, missing_count = 0;
  double raw = 0, reachable = 0;  // combinations, summed over the model and its groups
  bool complete() const { return invalid_count == 0 && missing_count == 0; }
};
constexpr std::size_t kMostShown = 100;

/// REQUIRES: rows without open cells. Throws InputError where the strength is out of range or a
/// combination of columns has more values than memory allows.
Verification verify(const Model& model, const std::vector<Row>& rows, int strength);

}  // namespace graphproof::cover

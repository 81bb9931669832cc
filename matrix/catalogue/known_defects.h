// Known defects of CUDA graphs that are not planted under their own number, with what shows each of
// them instead (matrix/tables/known_defects.json). docs/reference/faults.md lists them.
#pragma once

#include <string>
#include <vector>

#include "matrix/input/document.h"

namespace graphproof::matrix {

/// The defects M01 to M90 are those that were known when the table was made.
inline constexpr int kKnownDefects = 90;

struct KnownDefect {
  std::string defect;                 // M02
  std::string title;                  // what it is
  std::vector<std::string> faults;    // planted as these rows of faults.json
  std::vector<std::string> programs;  // rows of suites/watch/programs.json, by their number
  std::vector<std::string> tests;     // SUITE.NAME
  std::string why_not;                // if nothing shows it: why
};

/// The rows, in ascending order.
class KnownDefectTable {
 public:
  /// Throws InputError, also if a row has neither something that shows it nor a reason, or both.
  static KnownDefectTable parse(const Document& document);
  const std::vector<KnownDefect>& rows() const { return rows_; }

 private:
  std::vector<KnownDefect> rows_;
};

/// The shipped table.
KnownDefectTable load_known_defects();

}  // namespace graphproof::matrix

// What tells failures of one cause from those of another: the verdict that was observed, the check
// that failed first, and what it says without what differs from case to case. One signature is
// looked into at a time.
#pragma once

#include <compare>
#include <string>

#include "reports/record/run/record.h"

namespace graphproof::reports {

struct Signature {
  std::string verdict;  // observed, before an expectation was applied
  std::string check;    // "" where no check stands for the failure
  std::string
      what;  // numbers as #, names in `` as `_`; of an error of a library also its kind and number

  auto operator<=>(const Signature&) const = default;
};

/// REQUIRES: the record's observed verdict is a product failure.
Signature signature(const record::Record& record);
/// One line.
std::string to_text(const Signature& signature);

}  // namespace graphproof::reports

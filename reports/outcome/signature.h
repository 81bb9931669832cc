// The signature of a failure: failures with equal signatures are taken to have one cause. It is the
// observed verdict, the check that failed first, and the message of that check without the parts
// that differ from case to case.
#pragma once

#include <compare>
#include <string>

#include "reports/record/run/record.h"

namespace graphproof::reports {

/// See above. Signatures are ordered so that they can be keys.
struct Signature {
  std::string verdict;  // observed, before an expectation was applied
  std::string check;    // empty if the failure is not one of a check
  /// The message, with # for each number and `_` for each name in ``. For an error of a library
  /// also its type and number.
  std::string what;

  auto operator<=>(const Signature&) const = default;
};

/// REQUIRES: the record's observed verdict is a product failure.
Signature signature(const record::Record& record);
/// The signature in one line.
std::string to_text(const Signature& signature);

}  // namespace graphproof::reports

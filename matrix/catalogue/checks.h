// The checks as data (matrix/tables/checks.json): what each one states, the verdict of a case that
// fails it, and which cases require it. Their code is in suites/checks.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "matrix/expression/expression.h"

namespace graphproof::matrix {

/// What a check sees of a watched run, which has no axes and no eager arm.
struct WatchedForm {
  std::string code;    // its file in suites/checks/watched
  std::string states;  // what is true if it passes; the statement of the row if the table has none
  /// Kinds of evidence lines that it reads, and parts of a process that have to be seen
  /// (UnseenPart in reports/record/evidence/lines).
  std::vector<std::string> needs;
  std::string sees;       // what it finds in a watched run, for people
  std::string arms_only;  // what only a comparison with an eager run shows; may be empty
};

/// A row of the table. It has a form for cases, one for watched runs, or both.
struct CheckEntry {
  std::string check;     // D07.static_addresses
  std::string detector;  // D07
  std::string states;    // what is true if the check passes, for people
  std::string verdict;   // the verdict of a case that fails the check
  Expression required_when = Expression::always();
  Expression judged_when = Expression::always();  // required_when if the table names no other
  /// Of other subjects than reference it is required only where this holds too.
  std::optional<Expression> of_subjects;
  std::vector<std::string> devices;  // those on which it can be evaluated
  bool of_refused_cases = false;     // also judged if a rank refused the case
  std::string code;                  // its file in suites/checks; empty without
  /// Whether it judges figures that the driver counts for a whole GPU; cases whose ranks share a
  /// GPU do not require it.
  bool own_gpu = false;
  /// The first evidence revision that it can judge (reports/record/evidence/evidence.h).
  std::int64_t since = 1;
  std::optional<WatchedForm> watched;

  /// Whether it is judged over cases.
  bool of_cases() const { return !code.empty(); }

  bool shown_on(std::string_view device) const;
  /// Whether the case requires this check on `device`.
  bool required_of(const Case& test_case, std::string_view device) const;
};

/// The checks, in table order.
class CheckTable {
 public:
  /// Throws InputError.
  static CheckTable parse(const Document& document, const AxisTable& axes);

  const std::vector<CheckEntry>& checks() const { return checks_; }
  const CheckEntry* find(std::string_view check) const;
  std::vector<const CheckEntry*> of_detector(std::string_view detector) const;
  /// The names of the checks that are judged in `test_case`, on any device, in table order.
  std::vector<std::string> judged(const Case& test_case) const;
  /// The names of the checks that `test_case` requires on `device`, in table order.
  std::vector<std::string> required(const Case& test_case, std::string_view device) const;

 private:
  std::vector<CheckEntry> checks_;
};

}  // namespace graphproof::matrix

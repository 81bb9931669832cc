// The checks as data (matrix/tables/checks.json): detector, statement, verdict when it fails, and
// which cases require it. The code of a check is in suites/checks.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "matrix/expression/expression.h"

namespace graphproof::matrix {

struct CheckEntry {
  std::string check;     // D07.static_addresses
  std::string detector;  // D07
  std::string states, verdict;
  Expression required_when = Expression::always();
  std::vector<std::string> devices;  // where it can be shown
  bool own_gpu = false;  // judges what the driver counts on a GPU: not asked where ranks share one
  std::int64_t since =
      1;  // the first revision of evidence that it can judge (reports/record/evidence/evidence.h)

  bool shown_on(std::string_view device) const;
  /// Whether the case must have it on `device`.
  bool required_of(const Case& test_case, std::string_view device) const;
};

class CheckTable {
 public:
  static CheckTable parse(const Document& document, const AxisTable& axes);

  const std::vector<CheckEntry>& checks() const { return checks_; }
  const CheckEntry* find(std::string_view check) const;
  std::vector<const CheckEntry*> of_detector(std::string_view detector) const;
  /// The names of the checks that `test_case` requires on `device`, in table order.
  std::vector<std::string> required(const Case& test_case, std::string_view device) const;

 private:
  std::vector<CheckEntry> checks_;
};

}  // namespace graphproof::matrix

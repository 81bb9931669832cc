// What today's workloads and engines can run (matrix/tables/capabilities.json). A case that every
// rule allows but that needs something that is not built yet is skipped (skipped.capability): it is
// neither refused nor dropped.
#pragma once

#include <string>
#include <vector>

#include "matrix/expression/expression.h"

namespace graphproof::matrix {

/// A row of the table.
struct Capability {
  Expression require = Expression::always();
  std::string missing;  // what is not built, for a case in which `require` does not hold
};

/// What can be run, as conditions on cases.
class CapabilityTable {
 public:
  static CapabilityTable parse(const Document& document, const AxisTable& axes);
  /// What the case needs and is not built yet: "pp=2: pipeline parallelism". Empty if it can run.
  std::vector<std::string> missing(const Case& test_case, const Machine& machine) const;
  const std::vector<Capability>& capabilities() const { return capabilities_; }

 private:
  std::vector<Capability> capabilities_;
};

}  // namespace graphproof::matrix

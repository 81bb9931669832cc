// What today's workloads and engines can run (capabilities/capabilities.json). A case that is
// allowed by every rule but needs something that isn't built is skipped.capability, never refused
// and never dropped.
#pragma once

#include <string>
#include <vector>

#include "matrix/expression/expression.h"

namespace graphproof::matrix {

struct Capability {
  Expression require = Expression::always();
  std::string missing;  // what is not there when `require` fails
};

class CapabilityTable {
 public:
  static CapabilityTable parse(const Document& document, const AxisTable& axes);
  /// What the case needs and nobody has built yet: "pp=2: pipeline parallelism". Empty when it can
  /// run.
  std::vector<std::string> missing(const Case& test_case, const Machine& machine) const;
  const std::vector<Capability>& capabilities() const { return capabilities_; }

 private:
  std::vector<Capability> capabilities_;
};

}  // namespace graphproof::matrix

// What the subjects can run: graphproof's own workloads and engines
// (matrix/tables/capabilities.json) and the others (matrix/tables/subjects.json). A case that every
// rule allows but that needs something that is not built yet is skipped (skipped.capability): it is
// neither refused nor dropped.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "matrix/expression/expression.h"

namespace graphproof::matrix {

/// A row of the table.
struct Capability {
  std::vector<std::string> subjects;  // for which it holds
  Expression require = Expression::always();
  std::string missing;  // what is not built, for a case in which `require` does not hold
  /// Whether the machine's GPUs lack it, and no build could change that.
  bool of_architecture = false;
};

/// What can be run, as conditions on cases.
class CapabilityTable {
 public:
  /// The rows of the subject reference, and then `others`. Throws InputError.
  static CapabilityTable parse(const Document& document, const AxisTable& axes,
                               const std::vector<Capability>& others = {});
  /// What the case needs and is not built yet, or not installed on the machine: "pp=2: pipeline
  /// parallelism". Empty if it can run.
  std::vector<std::string> missing(const Case& test_case, const Machine& machine) const;
  /// The same for what the architecture of the machine's GPUs lacks.
  std::vector<std::string> missing_in_architecture(const Case& test_case,
                                                   const Machine& machine) const;
  const std::vector<Capability>& capabilities() const { return capabilities_; }

 private:
  void append_missing(bool of_architecture, const Case& test_case, const Machine& machine,
                      std::vector<std::string>& result) const;

  std::vector<Capability> capabilities_;
  std::map<std::string, std::vector<std::size_t>, std::less<>> rows_;  // of each subject
};

}  // namespace graphproof::matrix

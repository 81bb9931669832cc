// The subjects (matrix/tables/subjects.json): whose code a case tests, what each axis means for
// that code, and what the code cannot do. Which packages are installed is a fact about a machine
// (matrix/case/machine.h); nothing here looks it up.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "matrix/catalogue/capabilities.h"
#include "matrix/catalogue/limits.h"
#include "matrix/expression/expression.h"

namespace graphproof::matrix {

/// What an axis means for a subject. `can` limits its values for the reason `missing`. Without
/// `means` the subject has no such choice, and `can` asks for the default.
struct AxisMeaning {
  std::string means, missing;
  std::optional<Expression> can;
};

/// A subject.
struct Subject {
  std::string name;     // a value of the axis `subject`
  std::string meaning;  // for people
  /// Beginnings of the sources of rules whose code it runs.
  std::vector<std::string> implements;
  Limits limits;       // of phases in which it may be silent for longer than by default
  double seconds = 0;  // how long a case of one rank takes, as a first guess; 0: unknown
  std::map<std::string, AxisMeaning, std::less<>> axes;
};

/// The subjects, in the order of the axis `subject`.
class SubjectTable {
 public:
  /// Throws InputError, also if the table says nothing of an axis or of a value of the axis
  /// `subject`.
  static SubjectTable parse(const Document& document, const AxisTable& axes);

  const std::vector<Subject>& subjects() const { return subjects_; }
  /// Null for an unknown name.
  const Subject* find(std::string_view name) const;
  /// The names of the subjects that a rule with this `source` binds, because they run the code that
  /// enforces it. Several sources are separated by "; ".
  std::vector<std::string> bound_by(std::string_view source) const;
  /// What must hold for several axes of a subject together, or for the machine.
  const std::vector<Capability>& needs() const { return needs_; }
  /// What the subjects cannot do, needs included, as rows that follow those of the capability
  /// table.
  const std::vector<Capability>& capabilities() const { return capabilities_; }

 private:
  std::vector<Subject> subjects_;
  std::vector<Capability> needs_, capabilities_;
};

}  // namespace graphproof::matrix

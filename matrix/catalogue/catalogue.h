// All tables that ship with the product, read from copies inside the library, so that a program can
// be carried to another machine alone. A program's main loads the catalogue once and passes it on.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "matrix/case/axes.h"
#include "matrix/catalogue/bad_stacks.h"
#include "matrix/catalogue/capabilities.h"
#include "matrix/catalogue/checks.h"
#include "matrix/catalogue/faults.h"
#include "matrix/catalogue/hazards.h"
#include "matrix/catalogue/limits.h"
#include "matrix/catalogue/rules.h"
#include "matrix/catalogue/subjects.h"

namespace graphproof::matrix {

/// The shipped tables.
struct Catalogue {
  AxisTable axes;
  CheckTable checks;
  FaultTable faults;
  SubjectTable subjects;
  RuleSet rules;
  CapabilityTable capabilities;
  Limits limits;
  HazardTable hazards;
};

/// Single tables, for programs that start often and need only these.
AxisTable load_axes();
CheckTable load_checks(const AxisTable& axes);
BadStackTable load_bad_stacks();

/// Reads the shipped tables. Throws InputError if one is broken; a test holds that none is.
Catalogue load_catalogue();

/// The names of the shipped profiles, in the order in which CMakeLists.txt embeds them.
const std::vector<std::string>& shipped_profiles();
/// The text of a profile's matrix file; empty for an unknown name.
std::string_view shipped_profile_text(std::string_view profile);

}  // namespace graphproof::matrix

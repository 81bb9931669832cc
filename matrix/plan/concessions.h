// Which case to run instead of one that today's engines or this machine cannot run.
#pragma once

#include <string>
#include <vector>

#include "matrix/case/case.h"
#include "matrix/case/machine.h"
#include "matrix/catalogue/catalogue.h"

namespace graphproof::matrix {

/// Axis values that were given up together, such as "precision=mxfp8" for "precision=bf16".
struct Replacement {
  std::string from, to;
  std::string why;  // what was missing
};

/// A case that needs less than the one that was asked for.
struct RunnableCase {
  Case test_case;
  std::vector<Replacement> replaced;
  std::vector<std::string> missing;  // what even test_case needs and does not have; usually empty
};

/// Gives up one feature after another until nothing is missing, beginning with those that matter
/// least to what graphs hold. A case that lacks nothing stays as it is, and so does a case that a
/// rule refuses: its refusal is what gets tested.
RunnableCase runnable_case(const Case& asked, const Catalogue& catalogue, const Machine& machine);

}  // namespace graphproof::matrix

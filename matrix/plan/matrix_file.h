// A matrix file (DESIGN 6, "graphproof-matrix/1"): which axes vary, under which constraints, in
// which profiles. Strict: unknown keys and names are errors with place and nearest name. Files can
// extend each other. docs/reference/matrix.md is its documentation for those who write one.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "matrix/catalogue/catalogue.h"
#include "reports/record/verdict/verdict.h"

namespace graphproof::matrix {

struct VaryingAxis {
  std::string name;
  std::vector<Value> values;  // in file order; of a subset_of every subset, the empty one first
  std::optional<Expression> when;  // off elsewhere: absent in the row, the default in the case
  std::vector<int> weights =
      {};  // liking of each value where nothing has to be covered; empty: all alike
  std::vector<Origin> origins = {};  // where each value stands, for messages
  bool subset =
      false;  // the values are all subsets of a list, which some rules are there to thin out
};

struct Constraint {
  std::string id, why;
  Expression require = Expression::always();
  bool negative = false;  // rows that break this one alone become negative cases
  std::optional<record::Verdict> skip_as = {};  // rows that break it are skipped, not removed
  Place place = {};
};

struct KnownIssue {
  std::string id, expect, owner, until;
  Expression when = Expression::always();
};

struct OracleRule {
  Expression when = Expression::always();
  double rtol = 0, atol = 0;
  std::string why;
};

/// How a profile wants its rows chosen: `cover`, `groups`, `cost`, `steps`.
struct CoverRequest {
  int strength = 2;
  struct Group {
    std::vector<std::string> axes;
    int strength = 2;
  };
  std::vector<Group> groups;
  std::optional<Expression> cost =
      {};  // of a row, above 0; then the total is made small instead of the number
  std::int64_t steps = 200'000;  // moves of the search for fewer rows
};

/// A must-have case, and the axes that the file names for it: the others may take any value in a
/// covering plan.
struct Included {
  Case test_case;
  std::vector<std::string> named;
};

struct Profile {
  std::string name, cases = "product";  // product, faults, negative: the negative cases of the
                                        // rules, or recipes: published ones
  std::string isolation = "batch";
  std::optional<Expression> where = {};
  std::int64_t seed = 1;
  std::int64_t budget_ms = 0;  // 0: none
  Limits limits = {};
  std::optional<CoverRequest> cover = {};  // instead of the whole product
  std::int64_t sample = 0;  // that many rows of the product, drawn by the seed; 0: all
  Place place;
};

struct MatrixFile {
  std::string source;
  std::string sha256;                   // of the text, for run.json
  std::vector<VaryingAxis> axes;        // in axis order
  Scope scope;                          // defines
  std::vector<Constraint> constraints;  // require, then exclude, in file order
  std::vector<Included> include;
  std::vector<KnownIssue> known_issues;
  std::vector<OracleRule> oracle;
  Limits limits;
  std::map<std::string, Profile> profiles;
};

/// Returns the text of a file that `extends` names, a path beside the extending file; throws
/// InputError when it can't.
using FileReader = std::function<std::string(const std::string& path)>;

/// `catalogue` must outlive the result. A shipped profile's name is a valid `extends` too.
MatrixFile parse_matrix_file(std::string_view text, std::string source, const Catalogue& catalogue,
                             const FileReader& read);

/// The matrix file of a shipped profile. InputError with the nearest name when there is none.
MatrixFile shipped_matrix_file(std::string_view profile, const Catalogue& catalogue);

}  // namespace graphproof::matrix

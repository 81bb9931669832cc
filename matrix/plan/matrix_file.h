// A matrix file ("graphproof-matrix/1"): which axes vary, under which constraints, in which
// profiles. Reading is strict: an unknown key or name is an error with its place and the nearest
// name. Files can extend each other. The documentation for users is docs/reference/matrix.md.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "matrix/case/tolerance.h"
#include "matrix/catalogue/catalogue.h"
#include "reports/record/verdict/verdict.h"

namespace graphproof::matrix {

/// An axis that varies in the file.
struct VaryingAxis {
  std::string name;
  /// In file order. A subset_of has every subset, beginning with the empty one.
  std::vector<Value> values;
  /// Where it does not hold, the axis is off: absent in the row, and at its default in the case.
  std::optional<Expression> when;
  /// How often each value is chosen, compared with the others, where nothing has to be covered.
  /// Empty: all alike.
  std::vector<int> weights = {};
  std::vector<Origin> origins = {};  // the place of each value, for messages
  /// Whether the values come from a subset_of. Rules are expected to forbid some of the subsets.
  bool subset = false;
};

/// A row must fulfil `require`.
struct Constraint {
  std::string id, why;
  Expression require = Expression::always();
  bool negative = false;  // rows that break this one alone become negative cases
  std::optional<record::Verdict> skip_as = {};  // rows that break it are skipped, not removed
  Place place = {};
};

/// Cases that are expected to fail until a date.
struct KnownIssue {
  std::string id, expect, owner, until;  // a failing verdict or its prefix; a YYYY-MM-DD
  Expression when = Expression::always();
};

/// What cases must keep of the times or the memory that are measured of them: it becomes their
/// axis.
struct StatedLimit {
  std::string axis;  // perf_limit or memory_limit
  std::string text;  // of the axis
  Expression when = Expression::always();
};

/// Cases whose tensors of some classes may differ between two arms by a tolerance: it becomes their
/// axis.
struct OracleRule {
  Expression when = Expression::always();
  Tolerances tolerances;  // the same for every class that the rule names
  std::string why;
  Place place = {};
};

/// How a profile chooses rows that cover combinations: `cover`, `groups`, `cost`, `steps`.
struct CoverRequest {
  int strength = 2;
  /// Axes with a strength of their own.
  struct Group {
    std::vector<std::string> axes;
    int strength = 2;
  };
  std::vector<Group> groups;
  /// The cost of a row, above 0; with it the total cost is made small instead of the number of
  /// rows.
  std::optional<Expression> cost = {};
  std::int64_t steps = 200'000;  // moves of the search for fewer rows
};

/// A must-have case, and the axes that the file names for it. In a covering plan the other axes may
/// have any value.
struct Included {
  Case test_case;
  std::vector<std::string> named;
};

/// Which cases a profile has, and how they run.
struct Profile {
  std::string name;
  /// product: of the varying axes. faults: the planted faults. negative: the negative cases of the
  /// rules. recipes: the published training recipes.
  std::string cases = "product";
  std::string isolation = "batch";
  std::optional<Expression> where = {};
  std::int64_t seed = 1;
  std::int64_t budget_ms = 0;  // 0: none
  Limits limits = {};
  std::optional<CoverRequest> cover = {};  // instead of the whole product
  std::int64_t sample = 0;  // how many rows of the product to draw by the seed; 0: all rows
  Place place;
};

/// A matrix file with everything that it extends.
struct MatrixFile {
  std::string source;
  std::string sha256;                   // of all texts, for run.json
  std::vector<VaryingAxis> axes;        // in axis order
  Scope scope;                          // defines
  std::vector<Constraint> constraints;  // require, then exclude, in file order
  std::vector<Included> include;
  std::vector<KnownIssue> known_issues;
  std::vector<OracleRule> oracle;
  std::vector<StatedLimit> stated_limits;
  Limits limits;
  std::map<std::string, Profile> profiles;
};

/// Returns the text of a file that `extends` names. `path` is relative to the folder of the
/// extending file. Throws InputError if it can't be read.
using FileReader = std::function<std::string(const std::string& path)>;

/// Reads a matrix file. A shipped profile's name is a valid `extends` too. Throws InputError.
/// REQUIRES: the catalogue outlives the result.
MatrixFile parse_matrix_file(std::string_view text, std::string source, const Catalogue& catalogue,
                             const FileReader& read);

/// The matrix file of a shipped profile. Throws InputError with the nearest name if there is none.
MatrixFile shipped_matrix_file(std::string_view profile, const Catalogue& catalogue);

}  // namespace graphproof::matrix

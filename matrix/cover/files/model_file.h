// Reads models from files: PICT, ACTS, and clauses in JSON.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "matrix/cover/model/model.h"

namespace graphproof::cover {

/// The format of a model file; read_model() finds out which one `automatic` is.
enum class Format { automatic, pict, acts, clauses };

/// A model that was read.
struct ModelFile {
  Model model;
  Format format = Format::pict;
  std::vector<std::string> warnings;  // about texts in constraints that no value equals
};

/// The largest file that is read. It is far larger than any model, so a larger file is a mistake.
constexpr std::size_t kMostModelBytes = std::size_t{64} << 20;

/// Reads a model. `automatic` looks at the content: ACTS has `[System]` or `[Parameter]`, clauses
/// in JSON begin with `{` and have "clauses". Messages call the text `source`. Throws InputError
/// with the place.
ModelFile read_model(std::string_view text, std::string source, Format format);

// One function for each format, each in a file of its own.

/// PICT: `name: value, ~negative, alias | other, weighed (5), <parameter>`, `{ a, b } @ 3`,
/// constraints as in predicate.h, `#` comments. A sub-model becomes a group with a strength of its
/// own. PICT itself would also combine the rows of a sub-model with other values; this does not.
ModelFile read_pict(std::string_view text, std::string source);

/// ACTS: sections [System], [Parameter] (`name (type): values`), [Relation] (`(a, b, 3)`) and
/// [Constraint]; comments begin with `--`, `//` or `#`. Other sections are ignored.
ModelFile read_acts(std::string_view text, std::string source);

/// {"domain_sizes": [2, 3], "clauses": [[[parameter, value, positive], ...], ...]}, optionally
/// "names" and "values".
ModelFile read_clauses(std::string_view text, std::string source);

}  // namespace graphproof::cover

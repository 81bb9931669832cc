// Models as files: PICT, ACTS, and the clause form in JSON.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "matrix/cover/model/model.h"

namespace graphproof::cover {

enum class Format { automatic, pict, acts, clauses };

struct ModelFile {
  Model model;
  Format format = Format::pict;
  std::vector<std::string> warnings;  // texts that no value equals
};

/// The largest file that is read; far above any model, and an end to a mistake.
constexpr std::size_t kMostModelBytes = std::size_t{64} << 20;

/// `automatic` goes by the content: ACTS has `[System]` or `[Parameter]`, the clause form begins
/// with `{` and has "clauses". `source` names the text in messages. Throws InputError with the
/// place.
ModelFile read_model(std::string_view text, std::string source, Format format);

// One function a format, in a file each.

/// PICT: `name: value, ~negative, alias | other, weighed (5), <parameter>`, `{ a, b } @ 3`,
/// constraints as in predicate.h, `#` comments. A sub-model asks for its own strength among its
/// parameters; that its rows are then combined as if they were values, as PICT does, is not asked
/// for.
ModelFile read_pict(std::string_view text, std::string source);

/// ACTS: sections [System], [Parameter] (`name (type): values`), [Relation] (`(a, b, 3)`),
/// [Constraint]; `--`, `//` and
/// `#` comments. Other sections are passed over.
ModelFile read_acts(std::string_view text, std::string source);

/// {"domain_sizes": [2, 3], "clauses": [[[parameter, value, positive], ...], ...]}, optionally
/// "names" and "values".
ModelFile read_clauses(std::string_view text, std::string source);

}  // namespace graphproof::cover

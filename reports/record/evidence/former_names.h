// Former names in evidence: lines that ranks wrote before revision 10 are read under the present
// names.
#pragma once

#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace graphproof::record {

/// The first revision with the present names.
inline constexpr std::int64_t kNamesSince = 10;

struct FormerField {
  std::string_view was, is;
};

/// A kind that was renamed, or has renamed fields. `was` and `is` of the kind may be equal.
struct FormerKind {
  std::string_view was, is;
  std::vector<FormerField> fields;
};
std::span<const FormerKind> former_kinds();

/// Renames the kind (in `kind` and in `fields`) and the fields of a line of an older revision to
/// the present names. A line that has the present names is unchanged.
void use_todays_names(std::string& kind, nlohmann::json& fields);

}  // namespace graphproof::record

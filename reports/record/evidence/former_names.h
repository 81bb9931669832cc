// Names that evidence has borne: what ranks wrote before revision 10 is read under today's names.
#pragma once

#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace graphproof::record {

/// The first revision with today's names.
inline constexpr std::int64_t kNamesSince = 10;

struct FormerField {
  std::string_view was, is;
};

/// A kind whose name or fields were called otherwise. `was` and `is` of the kind may be equal.
struct FormerKind {
  std::string_view was, is;
  std::vector<FormerField> fields;
};
std::span<const FormerKind> former_kinds();

/// Gives a line of an older revision today's names: of its kind, in `kind` and in `fields`, and of
/// its fields. A line that has them already stays as it is.
void use_todays_names(std::string& kind, nlohmann::json& fields);

}  // namespace graphproof::record

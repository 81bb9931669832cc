// The values that axes take and that expressions compute.
#pragma once

#include <nlohmann/json.hpp>

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "matrix/input/version.h"

namespace graphproof::matrix {

/// An axis that `when` switched off: equal only to itself, a member of nothing.
struct Absent {
  bool operator==(const Absent&) const = default;
};
/// A machine or stack variable that nobody supplied: every result that depends on it is unknown.
struct Unknown {
  bool operator==(const Unknown&) const = default;
};

/// Text holds choices, calls and environment variables; a list holds a set in the axis's value
/// order. Only options of upstream dialects are floating-point numbers.
using Value = std::variant<Absent, Unknown, bool, std::int64_t, std::string,
                           std::vector<std::string>, Version, double>;

/// The one JSON form of a value. REQUIRES: not Unknown.
nlohmann::json value_json(const Value& value);

/// As it stands in a case's name: words bare, sets as [a,b], any other text in JSON quotes.
std::string value_text(const Value& value);

}  // namespace graphproof::matrix

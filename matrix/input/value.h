// The values of axes and of expressions, as JSON and as text.
#pragma once

#include <nlohmann/json.hpp>

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "matrix/input/version.h"

namespace graphproof::matrix {

/// The value of an axis that its `when` condition switches off. It equals only itself, and is in no
/// set.
struct Absent {
  bool operator==(const Absent&) const = default;
};
/// The value of a machine or stack variable that was not supplied. A result that depends on it is
/// unknown too.
struct Unknown {
  bool operator==(const Unknown&) const = default;
};

/// A text is the value of a choice, a call or an environment variable; a list is a set in the order
/// of the axis's values. Only options of upstream dialects have floating-point numbers.
using Value = std::variant<Absent, Unknown, bool, std::int64_t, std::string,
                           std::vector<std::string>, Version, double>;

/// The value as JSON; Absent is null. REQUIRES: not Unknown.
nlohmann::json value_json(const Value& value);

/// The value as a case's name has it: words bare, sets as [a,b], any other text in JSON quotes.
std::string value_text(const Value& value);

}  // namespace graphproof::matrix

// How long a phase may stay silent, by phase: the shipped defaults (limits/limits.json) and
// durations as users write them ("120s", "4h").
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "matrix/input/located_json.h"

namespace graphproof::matrix {

using Limits = std::map<std::string, std::int64_t>;  // phase -> milliseconds

Limits parse_default_limits(const Document& document);
/// Reads {"replay": "10s", ...}; phases must be among `known`.
Limits parse_limits(const Located& object, const Limits& known);
/// "250ms", "10s", "4m", "1h30m" or milliseconds as an integer. Throws InputError.
std::int64_t duration_ms(const Located& value);

}  // namespace graphproof::matrix

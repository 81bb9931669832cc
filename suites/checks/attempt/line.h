// Tolerant typed reading of one evidence line: a field of another type reads as absent, so that
// each check says itself what a line without it means, and a damaged line never ends the judge.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reports/record/evidence/evidence.h"

namespace graphproof::checks {

using Line = record::EvidenceLine;

const nlohmann::json& field(const Line& line, std::string_view key);  // null when absent
std::string text(const Line& line, std::string_view key);             // "" when absent
std::string digest_of(
    const Line& line,
    std::string_view what);  // of `digest` of a `step` line: grads, params, losses; "" when absent
bool is(const Line& line, std::string_view key,
        std::string_view want);  // text, compared without a copy
std::optional<std::int64_t> integer(const Line& line, std::string_view key);
/// Finite numbers only: NaN and infinity, in any spelling, equal nothing and bound nothing.
std::optional<double> number(const Line& line, std::string_view key);
std::optional<bool> flag(const Line& line, std::string_view key);
/// Absent when one element is no integer.
std::optional<std::vector<std::int64_t>> integers(const Line& line, std::string_view key);
/// A number or a non-empty list of numbers, all finite.
bool finite(const Line& line, std::string_view key);

}  // namespace graphproof::checks

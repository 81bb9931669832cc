#include "matrix/catalogue/limits.h"

#include <charconv>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace graphproof::matrix {
namespace {

// A month; a longer duration is a typing error.
constexpr std::int64_t kLongestMs = std::int64_t{30} * 24 * 3600 * 1000;

/// The milliseconds of a text such as "1h30m", which has each unit at most once and larger units
/// first; nothing for any other text.
std::optional<std::int64_t> sum_of_units(std::string_view text) {
  constexpr std::pair<std::string_view, std::int64_t> kUnits[] = {
      {"h", 3'600'000}, {"m", 60'000}, {"s", 1000}, {"ms", 1}};
  std::int64_t sum = 0;
  for (const auto& [unit, ms] : kUnits) {
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    const std::string_view rest = text.substr(static_cast<std::size_t>(end - text.data()));
    if (rest.substr(0, rest.find_first_of("0123456789")) != unit) continue;
    if (error != std::errc() || number <= 0 || number > (kLongestMs - sum) / ms)
      return std::nullopt;
    sum += number * ms;
    text = rest.substr(unit.size());
  }
  if (!text.empty() || sum == 0) return std::nullopt;
  return sum;
}

/// The phase called `name`. Throws InputError at `place`.
record::Phase phase_at(const std::string& name, const Place& place) {
  if (const auto phase = record::phase_from(name)) return *phase;
  const std::vector<std::string> phases(record::kPhaseNames.begin(), record::kPhaseNames.end());
  throw InputError({.what = "unknown phase `" + name + "`",
                    .got = name,
                    .want = "one of " + listed(phases),
                    .why = "",
                    .next = suggestion(name, phases, "choose one of them"),
                    .place = place});
}

}  // namespace

Limits parse_default_limits(const Document& document) {
  Limits limits;
  const Located root(document);
  root.expect_keys({"schema", "limits"}, {});
  root.at("schema").word({"graphproof-limits/1"});
  for (const Located& row : root.at("limits").items()) {
    row.expect_keys({"phase", "limit", "why"}, {});
    const Located phase = row.at("phase");
    limits[phase_at(phase.string(), phase.place())] = duration_ms(row.at("limit"));
  }
  if (limits.size() != record::kPhaseCount)
    root.at("limits").fail("a phase without a limit", "a row for every phase",
                           "a rank that is silent in it would never count as hung", "add the row");
  return limits;
}

Limits parse_limits(const Located& object) {
  Limits limits;
  for (const auto& [phase, value] : object.members())
    limits[phase_at(phase, value.key_place())] = duration_ms(value);
  return limits;
}

std::int64_t duration_ms(const Located& value) {
  if (value.json().is_number_integer()) return value.integer(1, kLongestMs);
  if (value.json().is_string())
    if (const auto ms = sum_of_units(value.string())) return *ms;
  value.fail("a duration that can't be read",
             "250ms, 10s, 4m, 1h30m, or milliseconds as an integer, at most 30 days", "",
             "write it as 10s");
}

}  // namespace graphproof::matrix

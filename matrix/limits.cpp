#include "matrix/limits.h"

#include <charconv>
#include <utility>
#include <vector>

namespace graphproof::matrix {
namespace {

constexpr std::int64_t kLongestMs = std::int64_t{30} * 24 * 3600 * 1000;  // a month: longer is a typing error

}  // namespace

Limits parse_default_limits(const Document& document) {
  Limits limits;
  const Located root(document);
  root.expect_keys({"schema", "limits"}, {});
  root.at("schema").word({"graphproof-limits/1"});
  for (const Located& row : root.at("limits").items()) {
    row.expect_keys({"phase", "limit", "why"}, {});
    limits[row.at("phase").string()] = duration_ms(row.at("limit"));
  }
  return limits;
}

Limits parse_limits(const Located& object, const Limits& known) {
  std::vector<std::string> phases;
  for (const auto& [phase, limit] : known) phases.push_back(phase);
  Limits limits;
  for (const auto& [phase, value] : object.members()) {
    if (known.count(phase) == 0)
      throw InputError({.what = "unknown phase `" + phase + "`", .got = phase, .want = "one of " + listed(phases), .why = "",
                        .next = suggestion(phase, phases, "choose one of them"), .place = value.key_place()});
    limits[phase] = duration_ms(value);
  }
  return limits;
}

std::int64_t duration_ms(const Located& value) {
  constexpr std::pair<std::string_view, std::int64_t> kUnits[] = {{"ms", 1}, {"s", 1000}, {"m", 60'000}, {"h", 3'600'000}};
  if (value.json().is_number_integer()) return value.integer(1, kLongestMs);
  if (value.json().is_string()) {
    const std::string text = value.string();
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    for (const auto& [unit, ms] : kUnits) {
      if (error == std::errc() && number > 0 && number <= kLongestMs / ms && std::string_view(end, static_cast<std::size_t>(text.data() + text.size() - end)) == unit)
        return number * ms;
    }
  }
  value.fail("a duration that can't be read", "250ms, 10s, 4m, 4h, or milliseconds as an integer, at most 30 days", "", "write it as 10s");
}

}  // namespace graphproof::matrix

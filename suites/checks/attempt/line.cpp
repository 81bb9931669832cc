#include "suites/checks/attempt/line.h"

#include <cmath>

namespace graphproof::checks {
namespace {

using nlohmann::json;

bool finite_number(const json& value) {
  return value.is_number() && std::isfinite(value.get<double>());
}

}  // namespace

const json& field(const Line& line, std::string_view key) {
  static const json absent;
  const auto found = line.fields.find(key);
  return found == line.fields.end() ? absent : *found;
}

std::string text(const Line& line, std::string_view key) {
  const json& value = field(line, key);
  return value.is_string() ? value.get<std::string>() : std::string();
}

std::string digest_of(const Line& line, std::string_view what) {
  const json& digest = field(line, "digest");
  const auto found = digest.is_object() ? digest.find(what) : digest.end();
  return digest.is_object() && found != digest.end() && found->is_string()
             ? found->get<std::string>()
             : std::string();
}

bool is(const Line& line, std::string_view key, std::string_view want) {
  const std::string* value = field(line, key).get_ptr<const std::string*>();
  return value ? *value == want : want.empty();
}

std::optional<std::int64_t> integer(const Line& line, std::string_view key) {
  const json& value = field(line, key);
  if (!value.is_number_integer()) return std::nullopt;
  return value.get<std::int64_t>();
}

std::optional<double> number(const Line& line, std::string_view key) {
  const json& value = field(line, key);
  if (!finite_number(value)) return std::nullopt;
  return value.get<double>();
}

std::optional<bool> flag(const Line& line, std::string_view key) {
  const json& value = field(line, key);
  if (!value.is_boolean()) return std::nullopt;
  return value.get<bool>();
}

std::optional<std::vector<std::int64_t>> integers(const Line& line, std::string_view key) {
  const json& value = field(line, key);
  if (!value.is_array()) return std::nullopt;
  std::vector<std::int64_t> result;
  for (const json& element : value) {
    if (!element.is_number_integer()) return std::nullopt;
    result.push_back(element.get<std::int64_t>());
  }
  return result;
}

bool finite(const Line& line, std::string_view key) {
  const json& value = field(line, key);
  if (!value.is_array()) return finite_number(value);
  for (const json& element : value)
    if (!finite_number(element)) return false;
  return !value.empty();
}

}  // namespace graphproof::checks

#include "matrix/input/value.h"

#include <algorithm>
#include <cassert>

namespace graphproof::matrix {
namespace {

// Whether a text needs no quotes in a case's name: words, versions, paths, and calls such as
// full(block,2).
bool bare(const std::string& text) {
  int depth = 0;
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '_' || c == '.' || c == '-' || c == '+' || c == '/' || c == ':';
    if (c == '(') ++depth;
    if (c == ')') --depth;
    if (depth < 0) return false;
    if (!plain && c != '(' && c != ')' && !(c == ',' && depth > 0)) return false;
  }
  return depth == 0 && !text.empty();
}

std::string spelled(const std::string& text) {
  return bare(text) ? text : nlohmann::json(text).dump();
}

}  // namespace

nlohmann::json value_json(const Value& value) {
  assert(!std::holds_alternative<Unknown>(value));
  if (const auto* boolean = std::get_if<bool>(&value)) return *boolean;
  if (const auto* integer = std::get_if<std::int64_t>(&value)) return *integer;
  if (const auto* number = std::get_if<double>(&value)) return *number;
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  if (const auto* set = std::get_if<std::vector<std::string>>(&value)) return *set;
  if (const auto* version = std::get_if<Version>(&value)) return version->text;
  return nullptr;
}

std::string value_text(const Value& value) {
  if (std::holds_alternative<Absent>(value)) return "absent";
  if (std::holds_alternative<Unknown>(value)) return "unknown";
  if (const auto* boolean = std::get_if<bool>(&value)) return *boolean ? "true" : "false";
  if (const auto* integer = std::get_if<std::int64_t>(&value)) return std::to_string(*integer);
  if (const auto* number = std::get_if<double>(&value)) return nlohmann::json(*number).dump();
  if (const auto* text = std::get_if<std::string>(&value)) return spelled(*text);
  if (const auto* version = std::get_if<Version>(&value)) return version->text;
  std::string list = "[";
  for (const std::string& element : std::get<std::vector<std::string>>(value))
    list += (list.size() == 1 ? "" : ",") + spelled(element);
  return list + "]";
}

}  // namespace graphproof::matrix

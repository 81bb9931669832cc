#include "matrix/expression/expression_type.h"

#include <algorithm>
#include <utility>

namespace graphproof::matrix {
namespace {

std::vector<std::string> argument_words(const Axis& axis) {
  std::vector<std::string> words;
  for (const CallForm& form : axis.calls)
    for (const CallArgument& argument : form.arguments)
      for (const std::string& word : argument.words)
        if (std::find(words.begin(), words.end(), word) == words.end()) words.push_back(word);
  return words;
}

}  // namespace

bool intersect(const std::vector<std::string>& left, const std::vector<std::string>& right) {
  return std::any_of(left.begin(), left.end(), [&](const std::string& word) {
    return std::find(right.begin(), right.end(), word) != right.end();
  });
}

const char* kind_text(Type::Kind kind) {
  switch (kind) {
    case Type::boolean:
      return "true or false";
    case Type::integer:
      return "an integer";
    case Type::number:
      return "a number";
    case Type::choice:
      return "a word";
    case Type::set:
      return "a set";
    case Type::call:
      return "a call such as full(block, 2)";
    case Type::text:
      return "a text";
    case Type::version:
      return "a version";
    case Type::absent:
      return "absent";
    case Type::unresolved:
      return "a value";
  }
  return "";
}

Type type_of(const Axis& axis, std::string label) {
  Type type{.kind = Type::boolean, .label = std::move(label), .axis = &axis};
  switch (axis.type) {
    case AxisType::boolean:
      type.kind = Type::boolean;
      break;
    case AxisType::integer:
      type.kind = Type::integer;
      break;
    case AxisType::number:
      type.kind = Type::number;
      break;
    case AxisType::text:
      type.kind = Type::text;
      break;
    case AxisType::choice:
      type.kind = Type::choice;
      type.words = axis.values;
      break;
    case AxisType::set:
    case AxisType::words:
      type.kind = Type::set;
      type.words = axis.values;
      break;
    case AxisType::call:
      type.kind = Type::call;
      type.words = argument_words(axis);
      break;
  }
  return type;
}

Type element_of(const Type& set) {
  return {.kind = set.kind == Type::set && set.words.empty() ? Type::text : Type::choice,
          .label = set.label,
          .words = set.words};
}

bool comparable(const Type& left, const Type& right) {
  const auto version_or_number = [](const Type& type) {
    return type.kind == Type::version || type.kind == Type::integer;
  };
  if (left.kind == Type::absent || right.kind == Type::absent) return true;
  if (left.kind == Type::version || right.kind == Type::version)
    return version_or_number(left) && version_or_number(right);
  const auto any_number = [](const Type& type) {
    return type.kind == Type::number || type.kind == Type::integer;
  };
  if (any_number(left) && any_number(right)) return true;
  const auto any_text = [](const Type& type) {
    return type.kind == Type::text || (type.kind == Type::choice && type.words.empty());
  };
  if (any_text(left) && any_text(right)) return true;
  if (left.kind != right.kind) return false;
  return left.words.empty() || right.words.empty() || intersect(left.words, right.words);
}

}  // namespace graphproof::matrix

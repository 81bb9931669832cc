// The functions of the expression language: their names, arguments and results.
#pragma once

#include <cstddef>
#include <string_view>

namespace graphproof::matrix {

/// A function, named as in expressions. `none` is no function.
enum class Function {
  none,
  min,
  max,
  len,
  divides,
  word,
  contains,
  has_item,
  items,
  lower,
  integer,
  subset,
  overlaps,
  with,
  without
};

/// The types of a function's arguments and result. `elements` takes a set and then values that it
/// may have; `two_sets` takes two sets of the same kind.
enum class Signature {
  integers,
  integers_to_truth,
  set_to_integer,
  call_to_word,
  texts_to_truth,
  text_to_text,
  text_to_integer,
  text_to_set,
  two_sets,
  elements
};

/// A function and how many arguments it takes at least and at most.
struct FunctionEntry {
  std::string_view name;
  Function function;
  Signature signature;
  std::size_t least, most;
};
inline constexpr FunctionEntry kFunctions[] = {
    {"min", Function::min, Signature::integers, 1, 64},
    {"max", Function::max, Signature::integers, 1, 64},
    {"len", Function::len, Signature::set_to_integer, 1, 1},
    {"divides", Function::divides, Signature::integers_to_truth, 2, 2},
    {"word", Function::word, Signature::call_to_word, 1, 1},
    {"contains", Function::contains, Signature::texts_to_truth, 2, 2},
    {"has_item", Function::has_item, Signature::texts_to_truth, 2, 2},
    {"items", Function::items, Signature::text_to_set, 1, 1},
    {"lower", Function::lower, Signature::text_to_text, 1, 1},
    {"integer", Function::integer, Signature::text_to_integer, 1, 1},
    {"subset", Function::subset, Signature::two_sets, 2, 2},
    {"overlaps", Function::overlaps, Signature::two_sets, 2, 2},
    {"with", Function::with, Signature::elements, 2, 64},
    {"without", Function::without, Signature::elements, 2, 64}};

/// The function called `name`; null if there is none.
constexpr const FunctionEntry* function_named(std::string_view name) {
  for (const FunctionEntry& entry : kFunctions)
    if (entry.name == name) return &entry;
  return nullptr;
}

}  // namespace graphproof::matrix

// The predicates of PICT and ACTS models: parsed with positions, turned into conditions over truth
// tables. (Our own matrix files have a language of their own, in matrix/expression/expression.h.)
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "matrix/cover/model/condition.h"
#include "matrix/input/input_error.h"

namespace graphproof::cover {

enum class Dialect { pict, acts };

/// A text with a place for each of its bytes.
struct Text {
  std::string_view source;  // file name
  std::string_view all;

  [[noreturn]] void fail(std::size_t offset, std::string what, std::string got, std::string want,
                         std::string next) const;
};

/// Reads one predicate from `offset` on and moves it behind: for PICT a whole statement with its
/// `;`, for ACTS one line. PICT: IF p THEN q ELSE r, [parameter], "text", number, = <> < <= > >=,
/// IN, LIKE, IsNegative, IsPositive, NOT AND OR; names and texts without regard to case. ACTS: bare
/// parameter names, = == != < <= > >=, + - * / %, ! && || =>. A number is compared as one with
/// values that are numbers; text as text. Throws InputError. Adds to `warnings` the texts that no
/// value of their parameter equals.
Condition read_predicate(const Text& text, std::size_t& offset, Dialect dialect, const Model& model,
                         std::vector<std::string>& warnings);

/// Whole text as a number.
bool as_number(std::string_view text, double& number);
bool equal_without_case(std::string_view left, std::string_view right);

}  // namespace graphproof::cover

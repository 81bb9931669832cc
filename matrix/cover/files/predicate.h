// Parses the predicates of PICT and ACTS models and turns them into conditions over truth tables.
// The language of matrix files is another one: matrix/expression/expression.h.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "matrix/cover/model/condition.h"
#include "matrix/input/input_error.h"

namespace graphproof::cover {

/// Whose language a predicate is in.
enum class Dialect { pict, acts };

/// A text whose bytes have places for messages.
struct Text {
  std::string_view source;  // file name
  std::string_view all;

  [[noreturn]] void fail(std::size_t offset, std::string what, std::string got, std::string want,
                         std::string next) const;
};

/// Reads one predicate at `offset` and moves `offset` past it: for PICT a whole statement with its
/// `;`, for ACTS one line. Throws InputError. Adds to `warnings` the texts that no value of their
/// parameter equals.
///
/// PICT: IF p THEN q ELSE r, [parameter], "text", numbers, = <> < <= > >=, IN, LIKE, IsNegative,
/// IsPositive, NOT AND OR; names and texts are compared without regard to case. ACTS: bare
/// parameter names, = == != < <= > >=, + - * / %, ! && || =>. Values that are numbers are compared
/// with a number as numbers, other values as texts.
Condition read_predicate(const Text& text, std::size_t& offset, Dialect dialect, const Model& model,
                         std::vector<std::string>& warnings);

/// Reads a number that is the whole text; false if it is none.
bool as_number(std::string_view text, double& number);
bool equal_without_case(std::string_view left, std::string_view right);

}  // namespace graphproof::cover

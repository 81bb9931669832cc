// The syntax of the expression language: parses a text into a tree and prints a tree. It leaves
// names and types to checker.h.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "matrix/input/located_json.h"

namespace graphproof::matrix {

/// What a node of a tree is.
enum class SyntaxKind {
  // literals; `text` is the spelling, or the content of a quoted text
  integer,
  version,
  text,
  boolean,
  absent,
  word,  // the name of an axis, variable or define, or a value
  set,   // {a, b} or [a, b]; the children are the elements
  call,  // name(children): a function, or a value such as full(block, 2)
  // operators with one child
  negate,
  not_,
  // operators with two children
  multiply,
  divide,
  remainder,
  add,
  subtract,
  equal,
  unequal,
  less,
  less_equal,
  greater,
  greater_equal,
  in,
  and_,
  or_,
  implies,
};

/// A node of a syntax tree.
struct Syntax {
  SyntaxKind kind = SyntaxKind::boolean;
  /// The byte of the text where the node begins; of a binary operator, where the operator is.
  std::size_t offset = 0;
  std::string text;
  std::int64_t number = 0;  // of an integer; a boolean is 0 or 1
  std::vector<std::shared_ptr<const Syntax>> children;
};

/// Parses a text. Throws InputError with a place from `origin`.
std::shared_ptr<const Syntax> parse_syntax(std::string_view text, const Origin& origin);

/// The canonical spelling of a tree: parse_syntax(print_syntax(x)) equals x except for offsets.
std::string print_syntax(const Syntax& syntax);

/// Whether the trees are equal except for offsets.
bool same_syntax(const Syntax& left, const Syntax& right);

/// The spelling of an operator.
std::string_view operator_text(SyntaxKind kind);

}  // namespace graphproof::matrix

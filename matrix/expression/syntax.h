// The syntax of the expression language: text to tree and tree to text. Names and types are
// checker.h's.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "matrix/input/located_json.h"

namespace graphproof::matrix {

enum class SyntaxKind {
  integer,
  version,
  text,
  boolean,
  absent,  // literals; `text` holds the spelling, or a text's content
  word,    // the name of an axis, variable or define, or a value
  set,     // {a, b} or [a, b]: children are the elements
  call,    // name(children): a function, or a value such as full(block, 2)
  negate,
  not_,  // one child
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
  implies,  // two children
};

struct Syntax {
  SyntaxKind kind = SyntaxKind::boolean;
  std::size_t offset =
      0;  // byte of the text where it begins; of a binary operator, where the operator stands
  std::string text;
  std::int64_t number = 0;  // integer; boolean as 0 or 1
  std::vector<std::shared_ptr<const Syntax>> children;
};

/// Throws InputError with a place from `origin`.
std::shared_ptr<const Syntax> parse_syntax(std::string_view text, const Origin& origin);

/// One spelling a tree: parse_syntax(print_syntax(x)) equals x but for offsets.
std::string print_syntax(const Syntax& syntax);

bool same_syntax(const Syntax& left, const Syntax& right);

/// The operator as it is written.
std::string_view operator_text(SyntaxKind kind);

}  // namespace graphproof::matrix

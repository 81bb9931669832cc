// What an operand of an expression is before its value is known, and which operands may be
// compared.
#pragma once

#include <string>
#include <vector>

#include "matrix/case/axes.h"
#include "matrix/expression/syntax.h"

namespace graphproof::matrix {

/// `words` are the values that a choice, set or call may have.
struct Type {
  enum Kind {
    boolean,
    integer,
    number,
    choice,
    set,
    call,
    text,
    version,
    absent,
    unresolved
  } kind = boolean;
  std::string label;  // for messages: "axis `tp`", "a number"
  std::vector<std::string> words = {};
  const Axis* axis = nullptr;  // of set and call
  const Syntax* literal =
      nullptr;  // of unresolved: a bare word, a quoted text, a set literal, a call value
};

/// "an integer", "a set".
const char* kind_text(Type::Kind kind);

/// The type of an axis; `label` is what messages call it.
Type type_of(const Axis& axis, std::string label);

/// What one value of a set is. A list that may hold any text has no words.
Type element_of(const Type& set);

/// Whether == has a meaning between the two. Types are strict: a word is no number.
bool comparable(const Type& left, const Type& right);

/// Whether the two have a word in common.
bool intersect(const std::vector<std::string>& left, const std::vector<std::string>& right);

}  // namespace graphproof::matrix

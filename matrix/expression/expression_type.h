// The types of operands, which are known before any value is, and which of them may be compared.
#pragma once

#include <string>
#include <vector>

#include "matrix/case/axes.h"
#include "matrix/expression/syntax.h"

namespace graphproof::matrix {

/// The type of an operand.
struct Type {
  /// `unresolved` is a literal whose type depends on the other operand: a bare word, a quoted text,
  /// a set or a call value.
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
  std::string label;                    // for messages: "axis `tp`", "a number"
  std::vector<std::string> words = {};  // the values that a choice, set or call may have
  const Axis* axis = nullptr;           // the axis of a set or call
  const Syntax* literal = nullptr;      // the literal, if unresolved
};

/// The kind for messages: "an integer", "a set".
const char* kind_text(Type::Kind kind);

/// The type of an axis; `label` is what messages call it.
Type type_of(const Axis& axis, std::string label);

/// The type of a set's elements. Elements of a list that may hold any text have no words.
Type element_of(const Type& set);

/// Whether values of the two types may be compared with ==. Types are strict: a word is no number.
bool comparable(const Type& left, const Type& right);

/// Whether the lists have a word in common.
bool intersect(const std::vector<std::string>& left, const std::vector<std::string>& right);

}  // namespace graphproof::matrix

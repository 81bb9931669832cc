// The operators of the expression language and how tightly they bind: one table for the parser and
// the printer.
#pragma once

#include <array>
#include <string_view>

#include "matrix/expression/syntax.h"

namespace graphproof::matrix {

/// Tightest last. `not` binds between `and` and the comparisons.
enum Binding { kImplies, kOr, kAnd, kNot, kCompare, kAdd, kMultiply, kUnary, kPrimary };

struct Operator {
  std::string_view text;
  SyntaxKind kind;
  Binding binding;
};
inline constexpr std::array<Operator, 15> kOperators = {{
    {"implies", SyntaxKind::implies, kImplies},
    {"or", SyntaxKind::or_, kOr},
    {"and", SyntaxKind::and_, kAnd},
    {"==", SyntaxKind::equal, kCompare},
    {"!=", SyntaxKind::unequal, kCompare},
    {"<=", SyntaxKind::less_equal, kCompare},
    {"<", SyntaxKind::less, kCompare},
    {">=", SyntaxKind::greater_equal, kCompare},
    {">", SyntaxKind::greater, kCompare},
    {"in", SyntaxKind::in, kCompare},
    {"+", SyntaxKind::add, kAdd},
    {"-", SyntaxKind::subtract, kAdd},
    {"*", SyntaxKind::multiply, kMultiply},
    {"/", SyntaxKind::divide, kMultiply},
    {"%", SyntaxKind::remainder, kMultiply},
}};

/// Of a binary operator; null for anything else.
constexpr const Operator* operator_of(SyntaxKind kind) {
  for (const Operator& op : kOperators)
    if (op.kind == kind) return &op;
  return nullptr;
}

}  // namespace graphproof::matrix

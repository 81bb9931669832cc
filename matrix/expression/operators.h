// The binary operators of the expression language and how tightly they bind: the table of the
// parser and of the printer.
#pragma once

#include <array>
#include <string_view>

#include "matrix/expression/syntax.h"

namespace graphproof::matrix {

/// How tightly an operator binds: loosest first. `not` is between `and` and the comparisons.
enum Binding { kImplies, kOr, kAnd, kNot, kCompare, kAdd, kMultiply, kUnary, kPrimary };

/// A binary operator.
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

/// The operator of that kind; null if it is not a binary operator.
constexpr const Operator* operator_of(SyntaxKind kind) {
  for (const Operator& op : kOperators)
    if (op.kind == kind) return &op;
  return nullptr;
}

}  // namespace graphproof::matrix

// The tree that the checker makes of an expression's syntax, and that evaluation walks through.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "matrix/expression/functions.h"
#include "matrix/expression/syntax.h"
#include "matrix/input/value.h"

namespace graphproof::matrix {

/// A node of a checked tree. It is a constant, an input, a function or an operator, and every
/// operator has operands of the types that it takes.
struct ExpressionNode {
  SyntaxKind kind = SyntaxKind::boolean;
  Function function = Function::none;
  std::size_t offset = 0;
  std::optional<Value> constant;
  std::size_t input = 0;  // index among the inputs, if `reads_input`
  bool reads_input = false;
  std::vector<std::shared_ptr<const ExpressionNode>> children;
};

}  // namespace graphproof::matrix

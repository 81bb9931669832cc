// What the checker makes of an expression's syntax and evaluation walks over. Nobody else needs it.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "matrix/expression/functions.h"
#include "matrix/expression/syntax.h"
#include "matrix/input/value.h"

namespace graphproof::matrix {

/// A checked tree: names are inputs or constants, and every operator has operands of the types it
/// takes.
struct ExpressionNode {
  SyntaxKind kind = SyntaxKind::boolean;
  Function function = Function::none;
  std::size_t offset = 0;
  std::optional<Value> constant;
  std::size_t input = 0;  // index among the inputs, when there is neither constant nor operator
  bool reads_input = false;
  std::vector<std::shared_ptr<const ExpressionNode>> children;
};

}  // namespace graphproof::matrix

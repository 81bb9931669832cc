#include "matrix/expression/expression.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "matrix/expression/checker.h"
#include "matrix/expression/evaluation.h"
#include "matrix/expression/functions.h"
#include "matrix/expression/syntax.h"

namespace graphproof::matrix {

Expression::Expression(std::shared_ptr<const Syntax> syntax, Checked checked, Origin origin)
    : syntax_(std::move(syntax)),
      root_(std::move(checked.root)),
      inputs_(std::move(checked.inputs)),
      origin_(std::move(origin)) {}

Expression Expression::condition(std::string_view text, const Scope& scope, Origin origin) {
  auto syntax = parse_syntax(text, origin);
  Checked checked = check(*syntax, true, scope, origin);
  return {std::move(syntax), std::move(checked), std::move(origin)};
}

Expression Expression::any(std::string_view text, const Scope& scope, Origin origin) {
  auto syntax = parse_syntax(text, origin);
  Checked checked = check(*syntax, false, scope, origin);
  return {std::move(syntax), std::move(checked), std::move(origin)};
}

Expression Expression::value_of(std::string_view text, const Scope& scope, Origin origin,
                                std::string_view axis) {
  const Axis& taker = scope.axes->at(axis, origin.at(0));
  auto syntax = parse_syntax(text, origin);
  Checked checked = check_value(*syntax, taker, scope, origin);
  return {std::move(syntax), std::move(checked), std::move(origin)};
}

Expression Expression::always() {
  auto syntax = std::make_shared<Syntax>();
  syntax->kind = SyntaxKind::boolean;
  syntax->number = 1;
  auto root = std::make_shared<ExpressionNode>();
  root->constant = true;
  return {std::move(syntax), {.root = std::move(root), .inputs = {}}, {}};
}

Value Expression::evaluate(std::span<const Value> values) const {
  assert(values.size() == inputs_.size());
  return matrix::evaluate(*root_, values, origin_);
}

Truth Expression::holds(std::span<const Value> values) const { return truth_of(evaluate(values)); }

Truth Expression::holds(const Case& test_case, const Machine& machine) const {
  return holds(input_values(inputs_, test_case, machine));
}

Value Expression::evaluate(const Case& test_case, const Machine& machine) const {
  return evaluate(input_values(inputs_, test_case, machine));
}

std::string Expression::text() const { return print_syntax(*syntax_); }

void add_define(Scope& scope, const std::string& name, std::string_view text, Origin origin) {
  const bool word = !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  }) && !(name[0] >= '0' && name[0] <= '9');
  const std::vector<std::string> keywords{"and", "or",   "not",   "implies",
                                          "in",  "true", "false", "absent"};
  const bool taken = scope.axes->find(name) != nullptr || variable_type(name) ||
                     function_named(name) != nullptr ||
                     std::find(keywords.begin(), keywords.end(), name) != keywords.end();
  if (!word || taken)
    throw InputError({.what = "`" + name + "` can't be a define's name",
                      .got = taken ? "a name that has a meaning already" : name,
                      .want = "letters, digits and _, and no axis, variable, function or keyword",
                      .why = "",
                      .next = "choose another name",
                      .place = origin.at(0)});
  scope.defines[name] = Expression::any(text, scope, origin).syntax();
}

std::vector<Value> input_values(std::span<const Input> inputs, const Case& test_case,
                                const Machine& machine) {
  std::vector<Value> values;
  values.reserve(inputs.size());
  for (const Input& input : inputs) {
    if (input.machine) {
      values.push_back(variable_value(machine, input.name));
      continue;
    }
    const auto found = test_case.values.find(input.name);
    values.push_back(found == test_case.values.end() ? input.default_value : found->second);
  }
  return values;
}

}  // namespace graphproof::matrix

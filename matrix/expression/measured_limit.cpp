#include "matrix/expression/measured_limit.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>

namespace graphproof::matrix {
namespace {

/// A number as its text has it. The lexer reads 1.02 as a version.
std::optional<double> number(const Syntax& syntax) {
  if (syntax.kind == SyntaxKind::integer) return static_cast<double>(syntax.number);
  if (syntax.kind != SyntaxKind::version) return std::nullopt;
  double value = 0;
  const char* const end = syntax.text.data() + syntax.text.size();
  const auto [at, error] = std::from_chars(syntax.text.data(), end, value);
  return error == std::errc() && at == end ? std::optional(value) : std::nullopt;
}

std::optional<double> unit(std::string_view name) {
  if (name == "MiB") return 1024.0 * 1024;
  if (name == "GiB") return 1024.0 * 1024 * 1024;
  return std::nullopt;
}

bool is_arithmetic(SyntaxKind kind) {
  return kind == SyntaxKind::add || kind == SyntaxKind::subtract || kind == SyntaxKind::multiply ||
         kind == SyntaxKind::divide;
}

double evaluate(const Syntax& syntax, const NumberOf& number_of) {
  if (const auto value = number(syntax)) return *value;
  if (syntax.kind == SyntaxKind::word) {
    const auto bytes = unit(syntax.text);
    return bytes ? *bytes : number_of(syntax.text);
  }
  const double left = evaluate(*syntax.children[0], number_of),
               right = evaluate(*syntax.children[1], number_of);
  switch (syntax.kind) {
    case SyntaxKind::add:
      return left + right;
    case SyntaxKind::subtract:
      return left - right;
    case SyntaxKind::multiply:
      return left * right;
    default:
      return left / right;
  }
}

void for_each_word(const Syntax& syntax, const std::function<void(const Syntax&)>& use) {
  if (syntax.kind == SyntaxKind::word) use(syntax);
  for (const auto& child : syntax.children) for_each_word(*child, use);
}

[[noreturn]] void refuse(const Origin& origin, const Syntax& at, std::string what, std::string want,
                         std::string next) {
  throw InputError({.what = std::move(what),
                    .got = print_syntax(at),
                    .want = std::move(want),
                    .why = "a limit is compared with what a run measures",
                    .next = std::move(next),
                    .place = origin.at(at.offset)});
}

void check_side(const Syntax& side, const Origin& origin) {
  if (number(side) || side.kind == SyntaxKind::word) return;
  if (!is_arithmetic(side.kind))
    refuse(origin, side, "a limit with something else than arithmetic",
           "numbers, quantities and integer axes, joined by + - * /",
           "write it as graph_step <= 1.02 * eager_step");
  for (const auto& child : side.children) check_side(*child, origin);
}

void add_comparisons(const std::shared_ptr<const Syntax>& tree, const Origin& origin,
                     std::vector<MeasuredLimit>& limits) {
  if (tree->kind == SyntaxKind::and_) {
    for (const auto& child : tree->children) add_comparisons(child, origin, limits);
    return;
  }
  const bool at_most = tree->kind == SyntaxKind::less_equal;
  if (!at_most && tree->kind != SyntaxKind::greater_equal)
    refuse(origin, *tree, "a limit that is no comparison", "one with <= or >=, or several with and",
           "write it as graph_step <= 1.02 * eager_step");
  for (const auto& side : tree->children) check_side(*side, origin);
  limits.push_back({.text = print_syntax(*tree),
                    .smaller = tree->children[at_most ? 0 : 1],
                    .larger = tree->children[at_most ? 1 : 0]});
}

}  // namespace

double MeasuredLimit::excess(const NumberOf& number_of) const {
  const double least = evaluate(*larger, number_of);
  // Also where it is no number, because a limit without a value cannot be kept.
  if (!(least > 0)) return std::numeric_limits<double>::infinity();
  return evaluate(*smaller, number_of) / least;
}

std::vector<std::string> MeasuredLimit::named(std::span<const std::string_view> quantities) const {
  std::vector<std::string> names;
  for (const std::string_view quantity : quantities) {
    bool found = false;
    for (const auto& side : {smaller, larger})
      for_each_word(*side, [&](const Syntax& word) { found |= word.text == quantity; });
    if (found) names.emplace_back(quantity);
  }
  return names;
}

std::vector<MeasuredLimit> parse_limit(std::string_view text, const Origin& origin) {
  std::vector<MeasuredLimit> limits;
  add_comparisons(parse_syntax(text, origin), origin, limits);
  return limits;
}

std::vector<MeasuredLimit> parse_limit(std::string_view text, const Origin& origin,
                                       std::span<const std::string_view> quantities,
                                       const AxisTable& axes) {
  std::vector<std::string> names(quantities.begin(), quantities.end());
  for (const Axis& axis : axes.axes())
    if (axis.type == AxisType::integer) names.push_back(axis.name);
  std::vector<MeasuredLimit> limits = parse_limit(text, origin);
  for (const MeasuredLimit& limit : limits) {
    for (const auto& side : {limit.smaller, limit.larger})
      for_each_word(*side, [&](const Syntax& word) {
        if (unit(word.text) || std::find(names.begin(), names.end(), word.text) != names.end())
          return;
        const std::vector<std::string> measured(quantities.begin(), quantities.end());
        refuse(origin, word, "`" + word.text + "` is not measured, and is no integer axis",
               "one of " + listed(measured) + ", or an integer axis",
               suggestion(word.text, names, "name a quantity"));
      });
    if (limit.named(quantities).empty())
      refuse(origin, *limit.smaller, "a limit that names no measured quantity",
             "one of " + listed(std::vector<std::string>(quantities.begin(), quantities.end())),
             "compare a quantity, as in " + std::string(quantities[1]) + " <= 1.02 * " +
                 std::string(quantities[0]));
  }
  return limits;
}

}  // namespace graphproof::matrix

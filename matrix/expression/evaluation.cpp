#include "matrix/expression/evaluation.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <string>
#include <vector>

#include "matrix/case/axes.h"
#include "matrix/expression/expression_type.h"

namespace graphproof::matrix {
namespace {

Value from_truth(Truth truth) {
  if (truth == Truth::unknown) return Unknown{};
  return truth == Truth::yes;
}

Truth opposite(Truth truth) {
  return truth == Truth::unknown ? truth : truth == Truth::yes ? Truth::no : Truth::yes;
}

double as_double(const Value& value) {
  const auto* integer = std::get_if<std::int64_t>(&value);
  return integer != nullptr ? static_cast<double>(*integer) : std::get<double>(value);
}

// -1, 0 or 1 if `left` is less than, equal to or greater than `right`. REQUIRES: numbers or
// versions.
int order(const Value& left, const Value& right) {
  if (std::holds_alternative<double>(left) || std::holds_alternative<double>(right))
    return (as_double(left) > as_double(right)) - (as_double(left) < as_double(right));
  const auto as_version = [](const Value& value) {
    if (const auto* number = std::get_if<std::int64_t>(&value))
      return *parse_version(std::to_string(std::max<std::int64_t>(0, *number)));
    return std::get<Version>(value);
  };
  const auto* left_number = std::get_if<std::int64_t>(&left);
  const auto* right_number = std::get_if<std::int64_t>(&right);
  if (left_number != nullptr && right_number != nullptr)
    return (*left_number > *right_number) - (*left_number < *right_number);
  const auto result = as_version(left) <=> as_version(right);
  return result < 0 ? -1 : result > 0 ? 1 : 0;
}

bool absent(const Value& value) { return std::holds_alternative<Absent>(value); }
bool unknown(const Value& value) { return std::holds_alternative<Unknown>(value); }

Truth equal(const Value& left, const Value& right) {
  if (unknown(left) || unknown(right)) return Truth::unknown;
  if (absent(left) || absent(right)) return absent(left) == absent(right) ? Truth::yes : Truth::no;
  const auto by_order = [](const Value& value) {
    return std::holds_alternative<Version>(value) || std::holds_alternative<double>(value);
  };
  const bool ordered = by_order(left) || by_order(right);
  return (ordered ? order(left, right) == 0 : left == right) ? Truth::yes : Truth::no;
}

// Evaluates one checked tree for one row of input values.
class Evaluation {
 public:
  using Node = ExpressionNode;
  Evaluation(std::span<const Value> values, const Origin& origin)
      : values_(values), origin_(origin) {}

  Value run(const Node& node) const {
    if (node.constant) return *node.constant;
    if (node.reads_input) return values_[node.input];
    switch (node.kind) {
      case SyntaxKind::not_:
        return from_truth(opposite(truth_of(run(*node.children[0]))));
      case SyntaxKind::and_:
        return both(node);
      case SyntaxKind::or_:
        return either(truth_of(run(*node.children[0])), node);
      case SyntaxKind::implies:
        return either(opposite(truth_of(run(*node.children[0]))), node);
      case SyntaxKind::equal:
        return from_truth(equal(run(*node.children[0]), run(*node.children[1])));
      case SyntaxKind::unequal:
        return from_truth(opposite(equal(run(*node.children[0]), run(*node.children[1]))));
      case SyntaxKind::less:
      case SyntaxKind::less_equal:
      case SyntaxKind::greater:
      case SyntaxKind::greater_equal:
        return ordered(node);
      case SyntaxKind::in:
        return member(node);
      case SyntaxKind::call:
        return function(node);
      default:
        return arithmetic(node);
    }
  }

 private:
  Value both(const Node& node) const {
    const Truth left = truth_of(run(*node.children[0]));
    if (left == Truth::no) return false;
    const Truth right = truth_of(run(*node.children[1]));
    if (right == Truth::no) return false;
    return from_truth(left == Truth::unknown ? left : right);
  }

  Value either(Truth left, const Node& node) const {
    if (left == Truth::yes) return true;
    const Truth right = truth_of(run(*node.children[1]));
    if (right == Truth::yes) return true;
    return from_truth(left == Truth::unknown ? left : right);
  }

  Value ordered(const Node& node) const {
    const Value left = run(*node.children[0]), right = run(*node.children[1]);
    if (unknown(left) || unknown(right)) return Unknown{};
    if (absent(left) || absent(right)) return false;
    const int result = order(left, right);
    switch (node.kind) {
      case SyntaxKind::less:
        return result < 0;
      case SyntaxKind::less_equal:
        return result <= 0;
      case SyntaxKind::greater:
        return result > 0;
      default:
        return result >= 0;
    }
  }

  Value member(const Node& node) const {
    const Value sought = run(*node.children[0]);
    if (node.function == Function::word) {
      const Value holder = run(*node.children[1]);
      if (unknown(sought) || unknown(holder)) return Unknown{};
      if (absent(sought) || absent(holder)) return false;
      const auto* set = std::get_if<std::vector<std::string>>(&holder);
      const std::vector<std::string> arguments =
          set != nullptr ? std::vector<std::string>()
                         : split_call(std::get<std::string>(holder)).arguments;
      const std::vector<std::string>& words = set != nullptr ? *set : arguments;
      return std::find(words.begin(), words.end(), std::get<std::string>(sought)) != words.end();
    }
    if (absent(sought)) return false;
    Truth found = Truth::no;
    for (std::size_t i = 1; i < node.children.size(); ++i) {
      const Truth same = equal(sought, run(*node.children[i]));
      if (same == Truth::yes) return true;
      if (same == Truth::unknown) found = Truth::unknown;
    }
    return from_truth(found);
  }

  Value function(const Node& node) const {
    std::vector<Value> arguments;
    for (const auto& child : node.children) arguments.push_back(run(*child));
    if (std::any_of(arguments.begin(), arguments.end(), unknown)) return Unknown{};
    if (std::any_of(arguments.begin(), arguments.end(), absent)) return Absent{};
    switch (node.function) {
      case Function::len:
        return static_cast<std::int64_t>(list(arguments[0]).size());
      case Function::word:
        return split_call(text(arguments[0])).word;
      case Function::contains:
        return text(arguments[0]).find(text(arguments[1])) != std::string::npos;
      case Function::has_item:
        return ("," + text(arguments[0]) + ",").find("," + text(arguments[1]) + ",") !=
               std::string::npos;
      case Function::items: {
        std::vector<std::string> items(1);
        for (const char c : text(arguments[0])) {
          if (c == ',')
            items.emplace_back();
          else if (c != ' ')
            items.back() += c;
        }
        items.erase(std::remove(items.begin(), items.end(), ""), items.end());
        return items;
      }
      case Function::lower: {
        std::string lowered = text(arguments[0]);
        for (char& c : lowered)
          if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
        return lowered;
      }
      case Function::integer: {
        const std::string& spelled = text(arguments[0]);
        std::int64_t number = 0;
        const auto [end, error] =
            std::from_chars(spelled.data(), spelled.data() + spelled.size(), number);
        if (error != std::errc() || end != spelled.data() + spelled.size()) return Absent{};
        return number;
      }
      case Function::subset:
        return std::all_of(
            list(arguments[0]).begin(), list(arguments[0]).end(),
            [&](const std::string& word) { return holds(list(arguments[1]), word); });
      case Function::overlaps:
        return intersect(list(arguments[0]), list(arguments[1]));
      case Function::with:
      case Function::without: {
        std::vector<std::string> words = list(arguments[0]);
        for (std::size_t i = 1; i < arguments.size(); ++i) {
          if (node.function == Function::without)
            words.erase(std::remove(words.begin(), words.end(), text(arguments[i])), words.end());
          else if (!holds(words, text(arguments[i])))
            words.push_back(text(arguments[i]));
        }
        return words;
      }
      case Function::divides: {
        const auto divisor = std::get<std::int64_t>(arguments[0]);
        return divisor == -1 ||
               (divisor != 0 && std::get<std::int64_t>(arguments[1]) % divisor == 0);
      }
      default: {
        auto result = std::get<std::int64_t>(arguments[0]);
        for (const Value& argument : arguments)
          result = node.function == Function::min
                       ? std::min(result, std::get<std::int64_t>(argument))
                       : std::max(result, std::get<std::int64_t>(argument));
        return result;
      }
    }
  }

  static const std::string& text(const Value& value) { return std::get<std::string>(value); }
  static const std::vector<std::string>& list(const Value& value) {
    return std::get<std::vector<std::string>>(value);
  }
  static bool holds(const std::vector<std::string>& words, const std::string& word) {
    return std::find(words.begin(), words.end(), word) != words.end();
  }

  Value arithmetic(const Node& node) const {
    const Value left_value = run(*node.children[0]);
    const Value right_value =
        node.kind == SyntaxKind::negate ? Value(std::int64_t{0}) : run(*node.children[1]);
    if (unknown(left_value) || unknown(right_value)) return Unknown{};
    if (absent(left_value) || absent(right_value)) return Absent{};
    const auto left = std::get<std::int64_t>(left_value),
               right = std::get<std::int64_t>(right_value);
    std::int64_t result = 0;
    bool overflow = false;
    switch (node.kind) {
      case SyntaxKind::negate:
        overflow = __builtin_sub_overflow(std::int64_t{0}, left, &result);
        break;
      case SyntaxKind::add:
        overflow = __builtin_add_overflow(left, right, &result);
        break;
      case SyntaxKind::subtract:
        overflow = __builtin_sub_overflow(left, right, &result);
        break;
      case SyntaxKind::multiply:
        overflow = __builtin_mul_overflow(left, right, &result);
        break;
      default:
        if (right == 0)
          fail(node, "division by zero",
               std::to_string(left) + " " + std::string(operator_text(node.kind)) + " 0",
               "a divisor that isn't 0");
        overflow = left == std::numeric_limits<std::int64_t>::min() && right == -1;
        if (!overflow) result = node.kind == SyntaxKind::divide ? left / right : left % right;
    }
    if (overflow)
      fail(node, "a number out of range",
           std::to_string(left) + " " + std::string(operator_text(node.kind)) + " " +
               std::to_string(right),
           "64-bit integers");
    return result;
  }

  [[noreturn]] void fail(const Node& node, std::string what, std::string got,
                         std::string want) const {
    throw InputError({.what = std::move(what),
                      .got = std::move(got),
                      .want = std::move(want),
                      .why = "",
                      .next = "exclude such values first: `x == 0 or ...`, or use divides(a, b)",
                      .place = origin_.at(node.offset)});
  }

  std::span<const Value> values_;
  const Origin& origin_;
};

}  // namespace

Truth truth_of(const Value& value) {
  if (std::holds_alternative<Unknown>(value)) return Truth::unknown;
  const bool* boolean = std::get_if<bool>(&value);
  return boolean != nullptr && *boolean ? Truth::yes : Truth::no;
}

Value evaluate(const ExpressionNode& node, std::span<const Value> values, const Origin& origin) {
  return Evaluation(values, origin).run(node);
}

}  // namespace graphproof::matrix

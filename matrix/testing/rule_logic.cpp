#include "matrix/testing/rule_logic.h"

#include <algorithm>
#include <cadical.hpp>
#include <optional>

#include "matrix/expression/expression_node.h"

namespace graphproof::matrix {
namespace {

constexpr std::size_t kMostLeaves = 1
                                    << 18;  // parts into which the values of one expression are cut
constexpr std::int64_t kSmallIntegers[] = {0, 1, 2,
                                           3, 4, 8};  // some of these divide others, some do not

// For each input the constants that it is compared with or called with.
using Compared = std::map<std::string, std::vector<Value>>;

bool joins(SyntaxKind kind) {
  return kind == SyntaxKind::and_ || kind == SyntaxKind::or_ || kind == SyntaxKind::implies ||
         kind == SyntaxKind::not_;
}

void leaves(const ExpressionNode& node, const std::vector<Input>& inputs,
            std::vector<Value>& constants, std::set<std::string>& names) {
  if (node.constant) constants.push_back(*node.constant);
  if (node.reads_input) names.insert(inputs[node.input].name);
  for (const auto& child : node.children) leaves(*child, inputs, constants, names);
}

void collect(const ExpressionNode& node, const std::vector<Input>& inputs, Compared& compared) {
  if (joins(node.kind)) {
    for (const auto& child : node.children) collect(*child, inputs, compared);
    return;
  }
  std::vector<Value> constants;
  std::set<std::string> names;
  leaves(node, inputs, constants, names);
  for (const std::string& name : names)
    compared[name].insert(compared[name].end(), constants.begin(), constants.end());
}

void add(std::vector<Value>& values, Value value) {
  if (std::find(values.begin(), values.end(), value) == values.end())
    values.push_back(std::move(value));
}

// Adds the empty list, each word alone, each pair in order, and all words.
void add_lists(std::vector<Value>& values, const std::vector<std::string>& words) {
  add(values, std::vector<std::string>());
  for (std::size_t i = 0; i < words.size(); ++i) {
    add(values, std::vector<std::string>{words[i]});
    for (std::size_t j = i + 1; j < words.size(); ++j)
      add(values, std::vector<std::string>{words[i], words[j]});
  }
  if (!words.empty()) add(values, words);
}

void add_calls(std::vector<Value>& values, const Axis& axis) {
  for (const CallForm& form : axis.calls) {
    if (form.arguments.empty()) {
      add(values, form.word);
      continue;
    }
    const bool subset = form.arguments.size() == 1 && !form.arguments[0].integer;  // selective(a|b)
    std::string all;
    for (const std::string& word : form.arguments[0].words) {
      all += (all.empty() ? "" : ",") + word;
      if (subset) add(values, form.word + "(" + word + ")");
      // A rule may allow one number alone, so there are two.
      for (const char* number : {"1", "2"})
        if (!subset) add(values, form.word + "(" + word + "," + number + ")");
    }
    if (subset) add(values, form.word + "(" + all + ")");
  }
}

std::vector<std::string> words_among(const std::vector<Value>& constants) {
  std::vector<std::string> words;
  const auto put = [&](const std::string& word) {
    if (std::find(words.begin(), words.end(), word) == words.end()) words.push_back(word);
  };
  for (const Value& constant : constants) {
    if (const auto* word = std::get_if<std::string>(&constant)) put(*word);
    if (const auto* list = std::get_if<std::vector<std::string>>(&constant))
      for (const std::string& word : *list) put(word);
  }
  return words;
}

std::vector<Value> machine_domain(std::string_view name, const std::vector<Value>& constants) {
  std::vector<Value> values;
  switch (*variable_type(name)) {
    case VariableType::device:
      return {std::string("sim"), std::string("cuda")};
    case VariableType::integer:
      for (const std::int64_t number : {1, 2, 4, 8, 80, 90, 100}) add(values, number);
      for (const Value& constant : constants)
        if (const auto* number = std::get_if<std::int64_t>(&constant))
          for (const std::int64_t near : {*number - 1, *number, *number + 1}) add(values, near);
      return values;
    case VariableType::version:
      add(values, Absent{});
      for (const char* text : {"0.1", "999.0"}) add(values, *parse_version(text));
      for (const Value& constant : constants)
        if (std::holds_alternative<Version>(constant)) add(values, constant);
      return values;
  }
  return values;
}

std::vector<Value> domain_of(const Axis& axis, const std::vector<Value>& constants) {
  std::vector<Value> values;
  add(values, axis.default_value);
  const std::vector<std::string> words = words_among(constants);
  switch (axis.type) {
    case AxisType::boolean:
      add(values, false);
      add(values, true);
      break;
    case AxisType::integer:
      for (const std::int64_t number : kSmallIntegers) add(values, number);
      for (const Value& constant : constants)
        if (const auto* number = std::get_if<std::int64_t>(&constant))
          for (const std::int64_t near : {*number - 1, *number, *number + 1}) add(values, near);
      if (axis.maximum > axis.minimum)
        std::erase_if(values, [&](const Value& value) {
          const auto* number = std::get_if<std::int64_t>(&value);
          return number != nullptr && (*number < axis.minimum || *number > axis.maximum);
        });
      break;
    case AxisType::number:
      for (const double number : {-1.0, 0.0, 0.5, 1.0, 2.0}) add(values, number);
      for (const Value& constant : constants)
        if (const auto* number = std::get_if<std::int64_t>(&constant))
          for (const double near : {-0.5, 0.0, 0.5})
            add(values, static_cast<double>(*number) + near);
      break;
    case AxisType::choice:
      for (const std::string& word : axis.values) add(values, word);
      break;
    case AxisType::set:
    case AxisType::words:
      if (axis.values.empty()) {
        std::vector<std::string> open = words;
        open.emplace_back("some_other_word");
        add_lists(values, open);
      } else {
        add_lists(values, axis.values);
      }
      break;
    case AxisType::call:
      add_calls(values, axis);
      break;
    case AxisType::text:
      for (const char* word : {"", "0", "1", "some other text"}) add(values, std::string(word));
      for (const std::string& word : words) add(values, word);
      break;
  }
  for (const Value& constant : constants)
    if (std::holds_alternative<Absent>(constant)) add(values, Absent{});
  std::erase_if(values, [](const Value& value) { return std::holds_alternative<Unknown>(value); });
  return values;
}

}  // namespace

namespace {

Truth holds(const Expression& expression, const std::vector<Value>& values) {
  try {
    return expression.holds(values);
  } catch (const InputError&) {
    return Truth::no;  // a division by zero; other rules refuse such values
  }
}

}  // namespace

struct RuleLogic::Encoded {
  struct Variable {
    std::vector<Value> values;
    int first = 0;
  };
  // Whether a rule applies, holds or is broken, as variables of the solver.
  struct Propositions {
    int applies = 0, broken = 0;
    std::vector<std::string> inputs;
  };

  CaDiCaL::Solver solver;
  int variables = 0;
  std::map<std::string, Variable> inputs;
  std::vector<Propositions> propositions;

  void clause(const std::vector<int>& literals) {
    for (const int literal : literals) solver.add(literal);
    solver.add(0);
  }

  void add_input(const std::string& name, std::vector<Value> values) {
    Variable variable{.values = std::move(values), .first = variables + 1};
    variables += static_cast<int>(variable.values.size());
    std::vector<int> any;
    for (int i = 0; i < static_cast<int>(variable.values.size()); ++i) {
      any.push_back(variable.first + i);
      for (int j = 0; j < i; ++j) clause({-(variable.first + i), -(variable.first + j)});
    }
    clause(any);
    inputs.emplace(name, std::move(variable));
  }

  // Makes a variable that is true exactly where the expression holds. The values of its inputs are
  // cut into parts until each part decides the expression.
  int define(const std::string& rule, const Expression& expression) {
    const int defined = ++variables;
    std::vector<Value> values(expression.inputs().size(), Unknown{});
    std::vector<int> path;
    std::size_t count = 0;
    const std::function<void(std::size_t)> cut = [&](std::size_t at) {
      const Truth decided = holds(expression, values);
      if (decided != Truth::unknown || at == values.size()) {
        if (++count > kMostLeaves)
          throw InputError({.what = "rule " + rule + " reads too many values",
                            .got = "more than " + std::to_string(kMostLeaves) + " parts",
                            .want = "fewer",
                            .why = "each is looked at",
                            .next = "split the condition",
                            .place = {}});
        std::vector<int> literals;
        for (const int literal : path) literals.push_back(-literal);
        literals.push_back(decided == Truth::yes ? defined : -defined);
        return clause(literals);
      }
      const Variable& variable = inputs.at(expression.inputs()[at].name);
      for (std::size_t i = 0; i < variable.values.size(); ++i) {
        values[at] = variable.values[i];
        path.push_back(variable.first + static_cast<int>(i));
        cut(at + 1);
        path.pop_back();
      }
      values[at] = Unknown{};
    };
    cut(0);
    return defined;
  }

  int all_of(const std::vector<int>& literals) {
    const int defined = ++variables;
    std::vector<int> back{defined};
    for (const int literal : literals) {
      clause({-defined, literal});
      back.push_back(-literal);
    }
    clause(back);
    return defined;
  }
  int any_of(std::vector<int> literals) {
    for (int& literal : literals) literal = -literal;
    return -all_of(literals);
  }

  bool solve(const std::vector<int>& assumptions) {
    for (const int literal : assumptions) solver.assume(literal);
    return solver.solve() == 10;
  }
};

namespace {

std::vector<const Expression*> expressions_of(const LogicRule& rule) {
  std::vector<const Expression*> all{&rule.when};
  for (const LogicPart& part : rule.parts) {
    all.push_back(&part.when);
    all.push_back(&part.require);
  }
  return all;
}

}  // namespace

RuleLogic::RuleLogic(std::vector<LogicRule> rules, const AxisTable& axes)
    : rules_(std::move(rules)), encoded_(std::make_unique<Encoded>()) {
  encoded_->solver.set("quiet", 1);
  Compared compared;
  std::map<std::string, Input> read;
  for (const LogicRule& rule : rules_)
    for (const Expression* expression : expressions_of(rule)) {
      collect(*expression->checked(), expression->inputs(), compared);
      for (const Input& input : expression->inputs()) read.emplace(input.name, input);
    }
  for (const auto& [name, input] : read)
    encoded_->add_input(name, input.machine ? machine_domain(name, compared[name])
                                            : domain_of(axes.at(name, {}), compared[name]));
  for (const LogicRule& rule : rules_) {
    Encoded::Propositions one;
    for (const Expression* expression : expressions_of(rule))
      for (const Input& input : expression->inputs())
        if (std::find(one.inputs.begin(), one.inputs.end(), input.name) == one.inputs.end())
          one.inputs.push_back(input.name);
    const int when = encoded_->define(rule.id, rule.when);
    std::vector<int> applying, breaking;
    for (const LogicPart& part : rule.parts) {
      const int applies = encoded_->define(rule.id, part.when);
      applying.push_back(applies);
      breaking.push_back(encoded_->all_of({applies, -encoded_->define(rule.id, part.require)}));
    }
    one.applies = encoded_->all_of({when, encoded_->any_of(applying)});
    one.broken = encoded_->all_of({when, encoded_->any_of(breaking)});
    encoded_->propositions.push_back(std::move(one));
  }
}

RuleLogic::~RuleLogic() = default;

bool RuleLogic::can_fire(std::size_t rule) {
  return encoded_->solve({encoded_->propositions[rule].broken});
}

bool RuleLogic::can_hold(std::size_t rule) {
  const auto& one = encoded_->propositions[rule];
  return encoded_->solve({one.applies, -one.broken});
}

bool RuleLogic::can_fire_before(std::size_t rule, std::span<const std::size_t> earlier) {
  std::vector<int> assumptions{encoded_->propositions[rule].broken};
  for (const std::size_t one : earlier) assumptions.push_back(-encoded_->propositions[one].broken);
  return encoded_->solve(assumptions);
}

std::vector<std::size_t> RuleLogic::hiders(std::size_t rule, std::span<const std::size_t> earlier) {
  std::vector<std::size_t> left(earlier.begin(), earlier.end());
  for (std::size_t i = 0; i < left.size();) {
    std::vector<std::size_t> fewer = left;
    fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i));
    if (can_fire_before(rule, fewer))
      ++i;
    else
      left = std::move(fewer);
  }
  return left;
}

bool RuleLogic::contradict(std::size_t one, std::size_t other) {
  const auto& a = encoded_->propositions[one];
  const auto& b = encoded_->propositions[other];
  const auto share = [&] {
    return std::any_of(a.inputs.begin(), a.inputs.end(), [&](const std::string& name) {
      return std::find(b.inputs.begin(), b.inputs.end(), name) != b.inputs.end();
    });
  };
  if (!share() || !can_hold(one) || !can_hold(other)) return false;
  return !encoded_->solve({a.applies, -a.broken, -b.broken}) ||
         !encoded_->solve({b.applies, -b.broken, -a.broken});
}

std::string RuleLogic::example(std::span<const std::size_t> rules) const {
  std::set<std::string> names;
  for (const std::size_t rule : rules)
    names.insert(encoded_->propositions[rule].inputs.begin(),
                 encoded_->propositions[rule].inputs.end());
  std::string text;
  for (const std::string& name : names) {
    const Encoded::Variable& variable = encoded_->inputs.at(name);
    for (std::size_t i = 0; i < variable.values.size(); ++i)
      if (encoded_->solver.val(variable.first + static_cast<int>(i)) > 0)
        text +=
            (text.empty() ? "" : ", ") + name + "=" +
            (std::holds_alternative<Absent>(variable.values[i]) ? "absent"
                                                                : value_text(variable.values[i]));
  }
  return text;
}

}  // namespace graphproof::matrix

#include "matrix/rule_logic.h"

#include <algorithm>
#include <cadical.hpp>
#include <optional>

#include "matrix/expression_node.h"

namespace graphproof::matrix {
namespace {

constexpr std::size_t kMostLeaves = 1 << 20;  // parts of the space of one rule's inputs
constexpr std::int64_t kSmallIntegers[] = {0, 1, 2, 4};

// The constants that stand in one comparison or call with an input, by input name.
using Compared = std::map<std::string, std::vector<Value>>;

bool joins(SyntaxKind kind) { return kind == SyntaxKind::and_ || kind == SyntaxKind::or_ || kind == SyntaxKind::implies || kind == SyntaxKind::not_; }

void leaves(const ExpressionNode& node, const std::vector<Input>& inputs, std::vector<Value>& constants, std::set<std::string>& names) {
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
  for (const std::string& name : names) compared[name].insert(compared[name].end(), constants.begin(), constants.end());
}

void add(std::vector<Value>& values, Value value) {
  if (std::find(values.begin(), values.end(), value) == values.end()) values.push_back(std::move(value));
}

// Empty, each word, each pair in order, all.
void add_lists(std::vector<Value>& values, const std::vector<std::string>& words) {
  add(values, std::vector<std::string>());
  for (std::size_t i = 0; i < words.size(); ++i) {
    add(values, std::vector<std::string>{words[i]});
    for (std::size_t j = i + 1; j < words.size(); ++j) add(values, std::vector<std::string>{words[i], words[j]});
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
      add(values, form.word + "(" + word + (subset ? "" : ",1") + ")");
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
    if (const auto* list = std::get_if<std::vector<std::string>>(&constant)) for (const std::string& word : *list) put(word);
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
          for (const double near : {-0.5, 0.0, 0.5}) add(values, static_cast<double>(*number) + near);
      break;
    case AxisType::choice:
      for (const std::string& word : axis.values) add(values, word);
      break;
    case AxisType::set:
    case AxisType::words:
      add_lists(values, axis.values.empty() ? words : axis.values);
      break;
    case AxisType::call: add_calls(values, axis); break;
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

struct RuleLogic::Encoded {
  struct Variable {
    std::vector<Value> values;
    int first = 0;
  };
  // What a rule says of an assignment, as variables of the solver.
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

  // A new variable that is true exactly where `truth` says yes: the space of the inputs is cut until it is decided.
  int define(const LogicRule& rule, const std::vector<std::string>& names, const std::function<Truth(const std::map<std::string, Value>&)>& truth) {
    const int defined = ++variables;
    std::map<std::string, Value> values;
    for (const std::string& name : names) values[name] = Unknown{};
    std::vector<int> path;
    std::size_t count = 0;
    const std::function<void(std::size_t)> cut = [&](std::size_t at) {
      const Truth decided = truth(values);
      if (decided != Truth::unknown || at == names.size()) {
        if (++count > kMostLeaves)
          throw InputError({.what = "rule " + rule.id + " reads too many values", .got = "more than " + std::to_string(kMostLeaves) + " parts", .want = "fewer", .why = "each is looked at",
                            .next = "split the rule", .place = {}});
        std::vector<int> literals;
        for (const int literal : path) literals.push_back(-literal);
        literals.push_back(decided == Truth::yes ? defined : -defined);
        return clause(literals);
      }
      const Variable& variable = inputs.at(names[at]);
      for (std::size_t i = 0; i < variable.values.size(); ++i) {
        values[names[at]] = variable.values[i];
        path.push_back(variable.first + static_cast<int>(i));
        cut(at + 1);
        path.pop_back();
      }
      values[names[at]] = Unknown{};
    };
    cut(0);
    return defined;
  }

  bool solve(const std::vector<int>& assumptions) {
    for (const int literal : assumptions) solver.assume(literal);
    return solver.solve() == 10;
  }
};

namespace {

Truth both(Truth left, Truth right) {
  if (left == Truth::no || right == Truth::no) return Truth::no;
  return left == Truth::yes && right == Truth::yes ? Truth::yes : Truth::unknown;
}
Truth either(Truth left, Truth right) {
  if (left == Truth::yes || right == Truth::yes) return Truth::yes;
  return left == Truth::no && right == Truth::no ? Truth::no : Truth::unknown;
}
Truth opposite(Truth truth) { return truth == Truth::unknown ? truth : truth == Truth::yes ? Truth::no : Truth::yes; }

Truth holds(const Expression& expression, const std::map<std::string, Value>& values) {
  std::vector<Value> aligned;
  for (const Input& input : expression.inputs()) aligned.push_back(values.at(input.name));
  try {
    return expression.holds(aligned);
  } catch (const InputError&) {
    return Truth::no;  // a division by zero: such values are refused elsewhere
  }
}

std::vector<const Expression*> expressions_of(const LogicRule& rule) {
  std::vector<const Expression*> all{&rule.when};
  for (const LogicPart& part : rule.parts) {
    all.push_back(&part.when);
    all.push_back(&part.require);
  }
  return all;
}

}  // namespace

RuleLogic::RuleLogic(std::vector<LogicRule> rules, const AxisTable& axes) : rules_(std::move(rules)), encoded_(std::make_unique<Encoded>()) {
  encoded_->solver.set("quiet", 1);
  Compared compared;
  std::map<std::string, Input> read;
  for (const LogicRule& rule : rules_)
    for (const Expression* expression : expressions_of(rule)) {
      collect(*expression->checked(), expression->inputs(), compared);
      for (const Input& input : expression->inputs()) read.emplace(input.name, input);
    }
  for (const auto& [name, input] : read)
    encoded_->add_input(name, input.machine ? machine_domain(name, compared[name]) : domain_of(axes.at(name, {}), compared[name]));
  for (const LogicRule& rule : rules_) {
    Encoded::Propositions one;
    for (const Expression* expression : expressions_of(rule))
      for (const Input& input : expression->inputs())
        if (std::find(one.inputs.begin(), one.inputs.end(), input.name) == one.inputs.end()) one.inputs.push_back(input.name);
    using Values = std::map<std::string, Value>;
    one.applies = encoded_->define(rule, one.inputs, [&](const Values& values) {
      Truth part = Truth::no;
      for (const LogicPart& each : rule.parts) part = either(part, holds(each.when, values));
      return both(holds(rule.when, values), part);
    });
    one.broken = encoded_->define(rule, one.inputs, [&](const Values& values) {
      Truth part = Truth::no;
      for (const LogicPart& each : rule.parts) part = either(part, both(holds(each.when, values), opposite(holds(each.require, values))));
      return both(holds(rule.when, values), part);
    });
    encoded_->propositions.push_back(std::move(one));
  }
}

RuleLogic::~RuleLogic() = default;

bool RuleLogic::can_fire(std::size_t rule) { return encoded_->solve({encoded_->propositions[rule].broken}); }

bool RuleLogic::can_hold(std::size_t rule) {
  const auto& one = encoded_->propositions[rule];
  return encoded_->solve({one.applies, -one.broken});
}

bool RuleLogic::can_fire_before(std::size_t rule, std::span<const std::size_t> earlier) {
  std::vector<int> assumptions{encoded_->propositions[rule].broken};
  for (const std::size_t one : earlier) assumptions.push_back(-encoded_->propositions[one].broken);
  return encoded_->solve(assumptions);
}

bool RuleLogic::contradict(std::size_t one, std::size_t other) {
  const auto& a = encoded_->propositions[one];
  const auto& b = encoded_->propositions[other];
  const auto share = [&] {
    return std::any_of(a.inputs.begin(), a.inputs.end(), [&](const std::string& name) { return std::find(b.inputs.begin(), b.inputs.end(), name) != b.inputs.end(); });
  };
  if (!share()) return false;
  return encoded_->solve({a.applies, b.applies, -a.broken}) && encoded_->solve({a.applies, b.applies, -b.broken}) && !encoded_->solve({a.applies, b.applies, -a.broken, -b.broken});
}

std::string RuleLogic::example(std::span<const std::size_t> rules) const {
  std::set<std::string> names;
  for (const std::size_t rule : rules) names.insert(encoded_->propositions[rule].inputs.begin(), encoded_->propositions[rule].inputs.end());
  std::string text;
  for (const std::string& name : names) {
    const Encoded::Variable& variable = encoded_->inputs.at(name);
    for (std::size_t i = 0; i < variable.values.size(); ++i)
      if (encoded_->solver.val(variable.first + static_cast<int>(i)) > 0)
        text += (text.empty() ? "" : ", ") + name + "=" + (std::holds_alternative<Absent>(variable.values[i]) ? "absent" : value_text(variable.values[i]));
  }
  return text;
}

}  // namespace graphproof::matrix

#include "matrix/expression.h"

#include <algorithm>
#include <cassert>
#include <charconv>
#include <limits>
#include <optional>

#include "matrix/syntax.h"

namespace graphproof::matrix {

enum class Function { none, min, max, len, divides, word, contains, has_item, items, lower, integer, subset, overlaps, with, without };

// A checked tree: names are inputs or constants, and every operator has operands of the types it takes.
struct Expression::Node {
  SyntaxKind kind = SyntaxKind::boolean;
  Function function = Function::none;
  std::size_t offset = 0;
  std::optional<Value> constant;
  std::size_t input = 0;  // index in inputs_, when there is neither constant nor operator
  bool reads_input = false;
  std::vector<std::shared_ptr<const Node>> children;
};

namespace {

constexpr std::size_t kMaximumNodes = 20000;  // defines are written out, so their sizes multiply

// What a function takes and gives: `elements` is a set, then values that it may hold; `two_sets` a set and one like it.
enum class Signature { integers, integers_to_truth, set_to_integer, call_to_word, texts_to_truth, text_to_text, text_to_integer, text_to_set, two_sets, elements };

struct FunctionEntry {
  std::string_view name;
  Function function;
  Signature signature;
  std::size_t least, most;  // arguments
};
constexpr FunctionEntry kFunctions[] = {
    {"min", Function::min, Signature::integers, 1, 64},
    {"max", Function::max, Signature::integers, 1, 64},
    {"len", Function::len, Signature::set_to_integer, 1, 1},
    {"divides", Function::divides, Signature::integers_to_truth, 2, 2},
    {"word", Function::word, Signature::call_to_word, 1, 1},
    {"contains", Function::contains, Signature::texts_to_truth, 2, 2},
    {"has_item", Function::has_item, Signature::texts_to_truth, 2, 2},
    {"items", Function::items, Signature::text_to_set, 1, 1},
    {"lower", Function::lower, Signature::text_to_text, 1, 1},
    {"integer", Function::integer, Signature::text_to_integer, 1, 1},
    {"subset", Function::subset, Signature::two_sets, 2, 2},
    {"overlaps", Function::overlaps, Signature::two_sets, 2, 2},
    {"with", Function::with, Signature::elements, 2, 64},
    {"without", Function::without, Signature::elements, 2, 64}};

const FunctionEntry* function_named(std::string_view name) {
  for (const FunctionEntry& entry : kFunctions)
    if (entry.name == name) return &entry;
  return nullptr;
}

// What an operand is before its value is known. `words` are the values that a choice, set or call may have.
struct Type {
  enum Kind { boolean, integer, number, choice, set, call, text, version, absent, unresolved } kind = boolean;
  std::string label;                 // for messages: "axis `tp`", "a number"
  std::vector<std::string> words = {};
  const Axis* axis = nullptr;        // of set and call
  const Syntax* literal = nullptr;   // of unresolved: a bare word, a quoted text, a set literal, a call value
};

const char* kind_text(Type::Kind kind) {
  switch (kind) {
    case Type::boolean: return "true or false";
    case Type::integer: return "an integer";
    case Type::number: return "a number";
    case Type::choice: return "a word";
    case Type::set: return "a set";
    case Type::call: return "a call such as full(block, 2)";
    case Type::text: return "a text";
    case Type::version: return "a version";
    case Type::absent: return "absent";
    case Type::unresolved: return "a value";
  }
  return "";
}

bool intersect(const std::vector<std::string>& left, const std::vector<std::string>& right) {
  return std::any_of(left.begin(), left.end(), [&](const std::string& word) { return std::find(right.begin(), right.end(), word) != right.end(); });
}

std::vector<std::string> argument_words(const Axis& axis) {
  std::vector<std::string> words;
  for (const CallForm& form : axis.calls)
    for (const CallArgument& argument : form.arguments)
      for (const std::string& word : argument.words)
        if (std::find(words.begin(), words.end(), word) == words.end()) words.push_back(word);
  return words;
}

std::string compact(const Syntax& syntax) {  // full(block, 2) as an axis spells it
  std::string text = print_syntax(syntax);
  text.erase(std::remove(text.begin(), text.end(), ' '), text.end());
  return text;
}

}  // namespace

class Checker {
 public:
  using Node = Expression::Node;
  using NodePtr = std::shared_ptr<const Node>;
  struct Typed {
    std::shared_ptr<Node> node;
    Type type;
  };

  Checker(const Scope& scope, const Origin& origin) : scope_(scope), origin_(origin) {}

  Expression run(std::shared_ptr<const Syntax> syntax, bool condition) {
    Typed root = condition ? boolean(*syntax, "a condition") : check(*syntax);
    if (root.type.kind == Type::unresolved) unknown_name(*root.type.literal);
    return finished(std::move(syntax), std::move(root));
  }

  Expression run_value(std::shared_ptr<const Syntax> syntax, const Axis& axis) {
    Typed root = check(*syntax);
    const Type type = type_of(axis, axis.name);
    if (root.type.kind == Type::unresolved) root.node = resolve(*root.type.literal, type);
    else if (!comparable(root.type, type))
      fail(*syntax, root.type.label + " is no value of " + type.label, kind_text(root.type.kind), kind_text(type.kind), "types are strict: \"4\" is not 4",
           "write a value that " + type.label + " can take");
    return finished(std::move(syntax), std::move(root));
  }

 private:
  Expression finished(std::shared_ptr<const Syntax> syntax, Typed root) {
    Expression expression;
    expression.syntax_ = std::move(syntax);
    expression.root_ = std::move(root.node);
    expression.inputs_ = std::move(inputs_);
    expression.origin_ = origin_;
    return expression;
  }

  std::size_t offset_of(const Syntax& syntax) const { return define_offset_ ? *define_offset_ : syntax.offset; }

  [[noreturn]] void fail(const Syntax& at, std::string what, std::string got, std::string want, std::string why, std::string next) const {
    throw InputError({.what = std::move(what), .got = std::move(got), .want = std::move(want), .why = std::move(why),
                      .next = std::move(next), .place = origin_.at(offset_of(at))});
  }

  [[noreturn]] void unknown_name(const Syntax& literal) const {
    if (literal.kind == SyntaxKind::call) {
      std::vector<std::string> functions;
      for (const FunctionEntry& entry : kFunctions) functions.emplace_back(entry.name);
      fail(literal, "unknown function `" + literal.text + "`", literal.text, "one of " + listed(functions), "",
           suggestion(literal.text, functions, "use one of them"));
    }
    if (literal.kind == SyntaxKind::set)
      fail(literal, "a set stands where one value is wanted", compact(literal), "`x in {a, b}` or `axis == {a, b}`", "", "use `in` with the set on its right");
    if (literal.kind == SyntaxKind::text)
      fail(literal, "a text that is compared with nothing", "\"" + literal.text + "\"", "an axis to compare it with", "", "compare it with an axis");
    std::vector<std::string> names = scope_.axes->names();
    names.insert(names.end(), variable_names().begin(), variable_names().end());
    for (const auto& [name, define] : scope_.defines) names.push_back(name);
    fail(literal, "unknown name `" + literal.text + "`", literal.text, "an axis, a variable, a define, or a value compared with an axis",
         "a bare word is a value only beside the axis that it is compared with",
         suggestion(literal.text, names, "`graphproof list axes` shows every axis and its values"));
  }

  std::shared_ptr<Node> node(const Syntax& syntax, std::vector<NodePtr> children = {}) {
    if (++nodes_ > kMaximumNodes)
      fail(syntax, "an expression that grows too large", "more than " + std::to_string(kMaximumNodes) + " parts once defines are written out",
           "a smaller one", "", "use smaller defines");
    auto result = std::make_shared<Node>();
    result->kind = syntax.kind;
    result->offset = offset_of(syntax);
    result->children = std::move(children);
    return result;
  }

  Typed constant(const Syntax& syntax, Value value, Type type) {
    auto result = node(syntax);
    result->constant = std::move(value);
    return {result, std::move(type)};
  }

  Typed input(const Syntax& syntax, Input input, Type type) {
    auto result = node(syntax);
    result->reads_input = true;
    const auto found = std::find_if(inputs_.begin(), inputs_.end(), [&](const Input& known) { return known.name == input.name; });
    result->input = static_cast<std::size_t>(found - inputs_.begin());
    if (found == inputs_.end()) inputs_.push_back(std::move(input));
    return {result, std::move(type)};
  }

  Typed name(const Syntax& syntax) {
    if (const auto define = scope_.defines.find(syntax.text); define != scope_.defines.end()) {
      // Problems inside a define are reported where it is used; it was checked alone before.
      const std::optional<std::size_t> outer = define_offset_;
      define_offset_ = offset_of(syntax);
      Typed result = check(*define->second);
      define_offset_ = outer;
      if (result.type.kind != Type::unresolved) result.type.label = "define `" + syntax.text + "`";
      return result;
    }
    if (const auto type = variable_type(syntax.text)) {
      const std::string label = "variable `" + syntax.text + "`";
      const Input variable{.name = syntax.text, .machine = true, .default_value = Unknown{}};
      if (*type == VariableType::device) return input(syntax, variable, {.kind = Type::choice, .label = label, .words = {"sim", "cuda"}});
      return input(syntax, variable, {.kind = *type == VariableType::integer ? Type::integer : Type::version, .label = label});
    }
    if (syntax.text.find('.') != std::string::npos) scope_.axes->at(syntax.text, origin_.at(offset_of(syntax)));
    const Axis* axis = scope_.axes->find(syntax.text);
    if (axis == nullptr) return {nullptr, {.kind = Type::unresolved, .label = "`" + syntax.text + "`", .literal = &syntax}};
    return input(syntax, {.name = syntax.text, .machine = false, .default_value = axis->default_value}, type_of(*axis, syntax.text));
  }

  Type type_of(const Axis& axis, const std::string& name) const {
    Type type{.kind = Type::boolean, .label = scope_.axes->noun() + " `" + name + "`", .axis = &axis};
    switch (axis.type) {
      case AxisType::boolean: type.kind = Type::boolean; break;
      case AxisType::integer: type.kind = Type::integer; break;
      case AxisType::number: type.kind = Type::number; break;
      case AxisType::text: type.kind = Type::text; break;
      case AxisType::choice: type.kind = Type::choice; type.words = axis.values; break;
      case AxisType::set:
      case AxisType::words: type.kind = Type::set; type.words = axis.values; break;
      case AxisType::call: type.kind = Type::call; type.words = argument_words(axis); break;
    }
    return type;
  }

  // What one value of a set is. A list that may hold any text has no words.
  static Type element_of(const Type& set) {
    return {.kind = set.kind == Type::set && set.words.empty() ? Type::text : Type::choice, .label = set.label, .words = set.words};
  }

  Typed check(const Syntax& syntax) {
    switch (syntax.kind) {
      case SyntaxKind::integer: return constant(syntax, syntax.number, {.kind = Type::integer, .label = std::to_string(syntax.number)});
      case SyntaxKind::boolean: return constant(syntax, syntax.number != 0, {.kind = Type::boolean, .label = print_syntax(syntax)});
      case SyntaxKind::version: return constant(syntax, *parse_version(syntax.text), {.kind = Type::version, .label = syntax.text});
      case SyntaxKind::absent: return constant(syntax, Absent{}, {.kind = Type::absent, .label = "absent"});
      case SyntaxKind::text: return {nullptr, {.kind = Type::unresolved, .label = "\"" + syntax.text + "\"", .literal = &syntax}};
      case SyntaxKind::set: return {nullptr, {.kind = Type::unresolved, .label = print_syntax(syntax), .literal = &syntax}};
      case SyntaxKind::word: return name(syntax);
      case SyntaxKind::call: return call(syntax);
      case SyntaxKind::not_: return {node(syntax, {boolean(*syntax.children[0], "the operand of `not`").node}), {.kind = Type::boolean, .label = "`not`"}};
      case SyntaxKind::negate: return {node(syntax, {integer(*syntax.children[0], "the operand of `-`").node}), {.kind = Type::integer, .label = "a number"}};
      case SyntaxKind::multiply:
      case SyntaxKind::divide:
      case SyntaxKind::remainder:
      case SyntaxKind::add:
      case SyntaxKind::subtract: {
        const std::string where = "an operand of `" + std::string(operator_text(syntax.kind)) + "`";
        const Typed left = integer(*syntax.children[0], where), right = integer(*syntax.children[1], where);
        return {node(syntax, {left.node, right.node}), {.kind = Type::integer, .label = "a number"}};
      }
      case SyntaxKind::and_:
      case SyntaxKind::or_:
      case SyntaxKind::implies: {
        const std::string where = "an operand of `" + std::string(operator_text(syntax.kind)) + "`";
        const Typed left = boolean(*syntax.children[0], where), right = boolean(*syntax.children[1], where);
        return {node(syntax, {left.node, right.node}), {.kind = Type::boolean, .label = "a condition"}};
      }
      case SyntaxKind::in: return membership(syntax);
      default: return comparison(syntax);
    }
  }

  Typed typed(const Syntax& syntax, Type::Kind kind, const std::string& where, const std::string& next) {
    Typed result = check(syntax);
    if (result.type.kind == Type::unresolved) unknown_name(*result.type.literal);
    if (result.type.kind != kind)
      fail(syntax, result.type.label + " is no " + (kind == Type::boolean ? "condition" : "number"), kind_text(result.type.kind), std::string(kind_text(kind)) + " as " + where, "", next);
    return result;
  }
  Typed boolean(const Syntax& syntax, const std::string& where) { return typed(syntax, Type::boolean, where, "compare it with a value"); }
  Typed integer(const Syntax& syntax, const std::string& where) { return typed(syntax, Type::integer, where, "use a number or an integer axis"); }

  Typed call(const Syntax& syntax) {
    const FunctionEntry* entry = function_named(syntax.text);
    if (entry == nullptr) return {nullptr, {.kind = Type::unresolved, .label = print_syntax(syntax), .literal = &syntax}};
    const std::size_t count = syntax.children.size();
    if (count < entry->least || count > entry->most)
      fail(syntax, "`" + syntax.text + "` with " + std::to_string(count) + " arguments", std::to_string(count),
           entry->least == entry->most ? std::to_string(entry->least) : "at least " + std::to_string(entry->least), "", "correct the arguments");
    auto result = node(syntax);
    result->function = entry->function;
    const std::string where = "an argument of `" + syntax.text + "`";
    Type type{.kind = Type::integer, .label = "`" + syntax.text + "`"};
    const auto operand_of = [&](std::size_t index, Type::Kind wanted) {
      const Syntax& argument = *syntax.children[index];
      const Typed operand = check(argument);
      if (operand.type.kind == Type::unresolved) unknown_name(*operand.type.literal);
      if (operand.type.kind != wanted)
        fail(argument, operand.type.label + " is no argument of `" + syntax.text + "`", kind_text(operand.type.kind), kind_text(wanted), "", "use an axis of that type");
      result->children.push_back(operand.node);
      return operand.type;
    };
    switch (entry->signature) {
      case Signature::integers:
      case Signature::integers_to_truth:
        for (const auto& child : syntax.children) result->children.push_back(integer(*child, where).node);
        if (entry->signature == Signature::integers_to_truth) type.kind = Type::boolean;
        break;
      case Signature::set_to_integer: operand_of(0, Type::set); break;
      case Signature::call_to_word:
        type.kind = Type::choice;
        for (const CallForm& form : operand_of(0, Type::call).axis->calls) type.words.push_back(form.word);
        break;
      case Signature::texts_to_truth:
        type.kind = Type::boolean;
        for (const auto& child : syntax.children) result->children.push_back(text(*child, syntax.text));
        break;
      case Signature::text_to_text:
      case Signature::text_to_integer:
      case Signature::text_to_set:
        result->children.push_back(text(*syntax.children[0], syntax.text));
        if (entry->signature == Signature::text_to_text) type.kind = Type::text;
        if (entry->signature == Signature::text_to_set) type.kind = Type::set;
        break;
      case Signature::two_sets: {
        const Type set = operand_of(0, Type::set);
        const Typed other = check(*syntax.children[1]);
        if (other.type.kind == Type::unresolved) result->children.push_back(resolve(*other.type.literal, set));
        else operand_of(1, Type::set);
        type.kind = Type::boolean;
        break;
      }
      case Signature::elements: {
        type = operand_of(0, Type::set);
        for (std::size_t i = 1; i < count; ++i) {
          const Typed element = check(*syntax.children[i]);
          if (element.type.kind == Type::unresolved) result->children.push_back(resolve(*element.type.literal, element_of(type)));
          else if (comparable(element.type, element_of(type))) result->children.push_back(element.node);
          else fail(*syntax.children[i], element.type.label + " is no value of " + type.label, kind_text(element.type.kind), "a value of " + type.label, "", "choose one of its values");
        }
        break;
      }
    }
    return {result, type};
  }

  NodePtr text(const Syntax& argument, const std::string& function) {
    const Typed operand = check(argument);
    if (operand.type.kind == Type::unresolved && operand.type.literal->kind == SyntaxKind::text) return constant(argument, argument.text, {}).node;
    if (operand.type.kind == Type::unresolved) unknown_name(*operand.type.literal);
    if (operand.type.kind != Type::text && operand.type.kind != Type::choice)
      fail(argument, operand.type.label + " is no argument of `" + function + "`", kind_text(operand.type.kind), "a text", "", "use a text in quotes, or something that is one");
    return operand.node;
  }

  // The constant that `literal` stands for beside an operand of type `against`.
  std::shared_ptr<Node> resolve(const Syntax& literal, const Type& against) {
    const auto wrong = [&](const std::string& want) {
      fail(literal, print_syntax(literal) + " can't be compared with " + against.label, print_syntax(literal), want, "types are strict: \"4\" is not 4",
           "write " + want);
    };
    const bool word = literal.kind == SyntaxKind::word || literal.kind == SyntaxKind::text;
    switch (against.kind) {
      case Type::choice:
        if (!word) wrong("one of " + listed(against.words) + (literal.kind == SyntaxKind::set ? " (or use `in`)" : ""));
        if (std::find(against.words.begin(), against.words.end(), literal.text) == against.words.end())
          fail(literal, "`" + literal.text + "` is no value of " + against.label, literal.text, "one of " + listed(against.words), "",
               suggestion(literal.text, against.words, "choose one of them"));
        return constant(literal, literal.text, {}).node;
      case Type::text:
        if (!word) wrong("a text");
        return constant(literal, literal.text, {}).node;
      case Type::number:
        if (literal.kind != SyntaxKind::version || literal.text.find_first_not_of("0123456789.") != std::string::npos) wrong("a number");
        return constant(literal, std::stod(literal.text), {}).node;
      case Type::call: {
        if (!word && literal.kind != SyntaxKind::call) wrong("one of " + listed(against.axis->values));
        const std::string text = literal.kind == SyntaxKind::call ? compact(literal) : literal.text;
        return constant(literal, parse_value_text(*against.axis, against.axis->name, text, origin_.at(offset_of(literal))), {}).node;
      }
      case Type::set: {
        if (literal.kind != SyntaxKind::set) wrong("a set of " + listed(against.words));
        Json elements = Json::array();
        for (const auto& child : literal.children) {
          if (child->kind != SyntaxKind::word && child->kind != SyntaxKind::text)
            fail(*child, print_syntax(*child) + " is no value of " + against.label, print_syntax(*child),
                 against.words.empty() ? "a text" : "one of " + listed(against.words), "", "choose one of them");
          elements.push_back(child->text);
        }
        if (against.axis == nullptr) return constant(literal, elements.get<std::vector<std::string>>(), {}).node;  // of items()
        return constant(literal, parse_value(*against.axis, against.axis->name, elements, origin_.at(offset_of(literal))), {}).node;
      }
      default:
        if (literal.kind == SyntaxKind::word) unknown_name(literal);
        wrong(kind_text(against.kind));
    }
    return nullptr;
  }

  static bool comparable(const Type& left, const Type& right) {
    const auto version_or_number = [](const Type& type) { return type.kind == Type::version || type.kind == Type::integer; };
    if (left.kind == Type::absent || right.kind == Type::absent) return true;
    if (left.kind == Type::version || right.kind == Type::version) return version_or_number(left) && version_or_number(right);
    const auto any_number = [](const Type& type) { return type.kind == Type::number || type.kind == Type::integer; };
    if (any_number(left) && any_number(right)) return true;
    const auto any_text = [](const Type& type) { return type.kind == Type::text || (type.kind == Type::choice && type.words.empty()); };
    if (any_text(left) && any_text(right)) return true;
    if (left.kind != right.kind) return false;
    return left.words.empty() || right.words.empty() || intersect(left.words, right.words);
  }

  [[noreturn]] void incomparable(const Syntax& syntax, const Type& left, const Type& right) const {
    std::string next = "compare values of one type";
    // `model == collective`: the word names an axis, although the value of that name was meant.
    const Syntax& right_syntax = *syntax.children[1];
    if (right_syntax.kind == SyntaxKind::word && std::find(left.words.begin(), left.words.end(), right_syntax.text) != left.words.end())
      next = "`" + right_syntax.text + "` names an axis; write \"" + right_syntax.text + "\" for the value";
    const std::string quoted = right.kind == Type::integer && right_syntax.kind == SyntaxKind::integer ? std::to_string(right_syntax.number) : "";
    if (std::find(left.words.begin(), left.words.end(), quoted) != left.words.end()) next = "write \"" + quoted + "\" for the value";
    if (left.kind == Type::text && !quoted.empty()) next = "write \"" + quoted + "\" for the text";
    fail(syntax, left.label + " can't be compared with " + right.label, std::string(kind_text(left.kind)) + " and " + kind_text(right.kind),
         "two operands of one type", "types are strict: \"4\" is not 4", next);
  }

  // 0.5 reads as a version until it is known that a floating-point number stands beside it.
  void read_as_number(const Syntax& literal, Typed& side, const Type& other) {
    if (literal.kind == SyntaxKind::version && other.kind == Type::number) side = {resolve(literal, other), other};
  }

  Typed comparison(const Syntax& syntax) {
    Typed left = check(*syntax.children[0]), right = check(*syntax.children[1]);
    read_as_number(*syntax.children[0], left, right.type);
    read_as_number(*syntax.children[1], right, left.type);
    const bool left_open = left.type.kind == Type::unresolved, right_open = right.type.kind == Type::unresolved;
    if (left_open && right_open) unknown_name(left.type.literal->kind == SyntaxKind::word ? *left.type.literal : *right.type.literal);
    if (left_open) left = {resolve(*left.type.literal, right.type), right.type};
    else if (right_open) right = {resolve(*right.type.literal, left.type), left.type};
    else if (!comparable(left.type, right.type)) incomparable(syntax, left.type, right.type);
    if (syntax.kind != SyntaxKind::equal && syntax.kind != SyntaxKind::unequal) {
      for (const Type* type : {&left.type, &right.type})
        if (type->kind != Type::integer && type->kind != Type::number && type->kind != Type::version)
          fail(syntax, "`" + std::string(operator_text(syntax.kind)) + "` has no meaning for " + type->label, kind_text(type->kind), "numbers or versions", "",
               "use ==, != or in");
    }
    return {node(syntax, {left.node, right.node}), {.kind = Type::boolean, .label = "a comparison"}};
  }

  // children[0] is sought among the rest (a set literal), or in children[1] (an axis; kind `in` with one right child).
  Typed membership(const Syntax& syntax) {
    const Typed left = check(*syntax.children[0]), right = check(*syntax.children[1]);
    const Type result{.kind = Type::boolean, .label = "a comparison"};
    if (right.type.kind == Type::unresolved && right.type.literal->kind == SyntaxKind::set) {
      if (left.type.kind == Type::unresolved) unknown_name(*left.type.literal);
      std::vector<NodePtr> children{left.node};
      for (const auto& element : syntax.children[1]->children) {
        const Typed typed = check(*element);
        if (typed.type.kind == Type::unresolved) children.push_back(resolve(*typed.type.literal, left.type));
        else if (comparable(left.type, typed.type)) children.push_back(typed.node);
        else fail(*element, typed.type.label + " can't be compared with " + left.type.label, kind_text(typed.type.kind), kind_text(left.type.kind),
                  "types are strict: \"4\" is not 4", "compare values of one type");
      }
      auto found = node(syntax, std::move(children));
      found->reads_input = false;
      return {found, result};
    }
    if (right.type.kind == Type::unresolved) unknown_name(*right.type.literal);
    if (right.type.kind != Type::set && right.type.kind != Type::call)
      fail(syntax, "nothing is `in` " + right.type.label, kind_text(right.type.kind), "a set, a set axis or a call axis", "", "use ==");
    const Type element = element_of(right.type);
    NodePtr sought = left.node;
    if (left.type.kind == Type::unresolved) sought = resolve(*left.type.literal, element);
    else if (!comparable(left.type, element)) incomparable(syntax, left.type, element);
    auto found = node(syntax, {sought, right.node});
    found->function = Function::word;  // marks membership in an axis; see evaluation
    return {found, result};
  }

  const Scope& scope_;
  const Origin& origin_;
  std::vector<Input> inputs_;
  std::optional<std::size_t> define_offset_;
  std::size_t nodes_ = 0;
};

namespace {

Truth truth(const Value& value) {
  if (std::holds_alternative<Unknown>(value)) return Truth::unknown;
  const bool* boolean = std::get_if<bool>(&value);
  return boolean != nullptr && *boolean ? Truth::yes : Truth::no;  // an absent truth is false
}

Value from_truth(Truth truth) {
  if (truth == Truth::unknown) return Unknown{};
  return truth == Truth::yes;
}

Truth opposite(Truth truth) { return truth == Truth::unknown ? truth : truth == Truth::yes ? Truth::no : Truth::yes; }

double as_double(const Value& value) {
  const auto* integer = std::get_if<std::int64_t>(&value);
  return integer != nullptr ? static_cast<double>(*integer) : std::get<double>(value);
}

// -1, 0, 1; REQUIRES numbers or versions.
int order(const Value& left, const Value& right) {
  if (std::holds_alternative<double>(left) || std::holds_alternative<double>(right))
    return (as_double(left) > as_double(right)) - (as_double(left) < as_double(right));
  const auto as_version = [](const Value& value) {
    if (const auto* number = std::get_if<std::int64_t>(&value)) return *parse_version(std::to_string(std::max<std::int64_t>(0, *number)));
    return std::get<Version>(value);
  };
  const auto* left_number = std::get_if<std::int64_t>(&left);
  const auto* right_number = std::get_if<std::int64_t>(&right);
  if (left_number != nullptr && right_number != nullptr) return (*left_number > *right_number) - (*left_number < *right_number);
  const auto result = as_version(left) <=> as_version(right);
  return result < 0 ? -1 : result > 0 ? 1 : 0;
}

bool absent(const Value& value) { return std::holds_alternative<Absent>(value); }
bool unknown(const Value& value) { return std::holds_alternative<Unknown>(value); }

Truth equal(const Value& left, const Value& right) {
  if (unknown(left) || unknown(right)) return Truth::unknown;
  if (absent(left) || absent(right)) return absent(left) == absent(right) ? Truth::yes : Truth::no;
  const auto by_order = [](const Value& value) { return std::holds_alternative<Version>(value) || std::holds_alternative<double>(value); };
  const bool ordered = by_order(left) || by_order(right);
  return (ordered ? order(left, right) == 0 : left == right) ? Truth::yes : Truth::no;
}

}  // namespace

// Evaluates one checked tree over one row of input values.
class Evaluation {
 public:
  using Node = Expression::Node;
  Evaluation(std::span<const Value> values, const Origin& origin) : values_(values), origin_(origin) {}

  Value run(const Node& node) const {
    if (node.constant) return *node.constant;
    if (node.reads_input) return values_[node.input];
    switch (node.kind) {
      case SyntaxKind::not_: return from_truth(opposite(truth(run(*node.children[0]))));
      case SyntaxKind::and_: return both(node);
      case SyntaxKind::or_: return either(truth(run(*node.children[0])), node);
      case SyntaxKind::implies: return either(opposite(truth(run(*node.children[0]))), node);
      case SyntaxKind::equal: return from_truth(equal(run(*node.children[0]), run(*node.children[1])));
      case SyntaxKind::unequal: return from_truth(opposite(equal(run(*node.children[0]), run(*node.children[1]))));
      case SyntaxKind::less:
      case SyntaxKind::less_equal:
      case SyntaxKind::greater:
      case SyntaxKind::greater_equal: return ordered(node);
      case SyntaxKind::in: return member(node);
      case SyntaxKind::call: return function(node);
      default: return arithmetic(node);
    }
  }

 private:
  Value both(const Node& node) const {
    const Truth left = truth(run(*node.children[0]));
    if (left == Truth::no) return false;
    const Truth right = truth(run(*node.children[1]));
    if (right == Truth::no) return false;
    return from_truth(left == Truth::unknown ? left : right);
  }

  Value either(Truth left, const Node& node) const {
    if (left == Truth::yes) return true;
    const Truth right = truth(run(*node.children[1]));
    if (right == Truth::yes) return true;
    return from_truth(left == Truth::unknown ? left : right);
  }

  Value ordered(const Node& node) const {
    const Value left = run(*node.children[0]), right = run(*node.children[1]);
    if (unknown(left) || unknown(right)) return Unknown{};
    if (absent(left) || absent(right)) return false;
    const int result = order(left, right);
    switch (node.kind) {
      case SyntaxKind::less: return result < 0;
      case SyntaxKind::less_equal: return result <= 0;
      case SyntaxKind::greater: return result > 0;
      default: return result >= 0;
    }
  }

  Value member(const Node& node) const {
    const Value sought = run(*node.children[0]);
    if (node.function == Function::word) {
      const Value holder = run(*node.children[1]);
      if (unknown(sought) || unknown(holder)) return Unknown{};
      if (absent(sought) || absent(holder)) return false;
      const auto* set = std::get_if<std::vector<std::string>>(&holder);
      const std::vector<std::string> arguments = set != nullptr ? std::vector<std::string>() : split_call(std::get<std::string>(holder)).arguments;
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
      case Function::len: return static_cast<std::int64_t>(list(arguments[0]).size());
      case Function::word: return split_call(text(arguments[0])).word;
      case Function::contains: return text(arguments[0]).find(text(arguments[1])) != std::string::npos;
      case Function::has_item: return ("," + text(arguments[0]) + ",").find("," + text(arguments[1]) + ",") != std::string::npos;
      case Function::items: {
        std::vector<std::string> items(1);
        for (const char c : text(arguments[0])) {
          if (c == ',') items.emplace_back();
          else if (c != ' ') items.back() += c;
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
        const auto [end, error] = std::from_chars(spelled.data(), spelled.data() + spelled.size(), number);
        if (error != std::errc() || end != spelled.data() + spelled.size()) return Absent{};
        return number;
      }
      case Function::subset: return std::all_of(list(arguments[0]).begin(), list(arguments[0]).end(), [&](const std::string& word) { return holds(list(arguments[1]), word); });
      case Function::overlaps: return intersect(list(arguments[0]), list(arguments[1]));
      case Function::with:
      case Function::without: {
        std::vector<std::string> words = list(arguments[0]);
        for (std::size_t i = 1; i < arguments.size(); ++i) {
          if (node.function == Function::without) words.erase(std::remove(words.begin(), words.end(), text(arguments[i])), words.end());
          else if (!holds(words, text(arguments[i]))) words.push_back(text(arguments[i]));
        }
        return words;
      }
      case Function::divides: {
        const auto divisor = std::get<std::int64_t>(arguments[0]);
        return divisor == -1 || (divisor != 0 && std::get<std::int64_t>(arguments[1]) % divisor == 0);
      }
      default: {
        auto result = std::get<std::int64_t>(arguments[0]);
        for (const Value& argument : arguments)
          result = node.function == Function::min ? std::min(result, std::get<std::int64_t>(argument)) : std::max(result, std::get<std::int64_t>(argument));
        return result;
      }
    }
  }

  static const std::string& text(const Value& value) { return std::get<std::string>(value); }
  static const std::vector<std::string>& list(const Value& value) { return std::get<std::vector<std::string>>(value); }
  static bool holds(const std::vector<std::string>& words, const std::string& word) { return std::find(words.begin(), words.end(), word) != words.end(); }

  Value arithmetic(const Node& node) const {
    const Value left_value = run(*node.children[0]);
    const Value right_value = node.kind == SyntaxKind::negate ? Value(std::int64_t{0}) : run(*node.children[1]);
    if (unknown(left_value) || unknown(right_value)) return Unknown{};
    if (absent(left_value) || absent(right_value)) return Absent{};
    const auto left = std::get<std::int64_t>(left_value), right = std::get<std::int64_t>(right_value);
    std::int64_t result = 0;
    bool overflow = false;
    switch (node.kind) {
      case SyntaxKind::negate: overflow = __builtin_sub_overflow(std::int64_t{0}, left, &result); break;
      case SyntaxKind::add: overflow = __builtin_add_overflow(left, right, &result); break;
      case SyntaxKind::subtract: overflow = __builtin_sub_overflow(left, right, &result); break;
      case SyntaxKind::multiply: overflow = __builtin_mul_overflow(left, right, &result); break;
      default:
        if (right == 0) fail(node, "division by zero", std::to_string(left) + " " + std::string(operator_text(node.kind)) + " 0", "a divisor that isn't 0");
        overflow = left == std::numeric_limits<std::int64_t>::min() && right == -1;
        if (!overflow) result = node.kind == SyntaxKind::divide ? left / right : left % right;
    }
    if (overflow) fail(node, "a number out of range", std::to_string(left) + " " + std::string(operator_text(node.kind)) + " " + std::to_string(right), "64-bit integers");
    return result;
  }

  [[noreturn]] void fail(const Node& node, std::string what, std::string got, std::string want) const {
    throw InputError({.what = std::move(what), .got = std::move(got), .want = std::move(want), .why = "",
                      .next = "exclude such values first: `x == 0 or ...`, or use divides(a, b)", .place = origin_.at(node.offset)});
  }

  std::span<const Value> values_;
  const Origin& origin_;
};

Expression Expression::condition(std::string_view text, const Scope& scope, Origin origin) {
  return Checker(scope, origin).run(parse_syntax(text, origin), true);
}

Expression Expression::any(std::string_view text, const Scope& scope, Origin origin) {
  return Checker(scope, origin).run(parse_syntax(text, origin), false);
}

Expression Expression::value_of(std::string_view text, const Scope& scope, Origin origin, std::string_view axis) {
  const Axis& taker = scope.axes->at(axis, origin.at(0));
  return Checker(scope, origin).run_value(parse_syntax(text, origin), taker);
}

Expression Expression::always() {
  Expression expression;
  auto syntax = std::make_shared<Syntax>();
  syntax->kind = SyntaxKind::boolean;
  syntax->number = 1;
  auto root = std::make_shared<Node>();
  root->constant = true;
  expression.syntax_ = syntax;
  expression.root_ = root;
  return expression;
}

Value Expression::evaluate(std::span<const Value> values) const {
  assert(values.size() == inputs_.size());
  return Evaluation(values, origin_).run(*root_);
}

Truth Expression::holds(std::span<const Value> values) const { return truth(evaluate(values)); }

Truth Expression::holds(const Case& test_case, const Machine& machine) const { return holds(input_values(inputs_, test_case, machine)); }

Value Expression::evaluate(const Case& test_case, const Machine& machine) const { return evaluate(input_values(inputs_, test_case, machine)); }

std::string Expression::text() const { return print_syntax(*syntax_); }

void add_define(Scope& scope, const std::string& name, std::string_view text, Origin origin) {
  const bool word = !name.empty() && std::all_of(name.begin(), name.end(), [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_'; }) &&
                    !(name[0] >= '0' && name[0] <= '9');
  const std::vector<std::string> keywords{"and", "or", "not", "implies", "in", "true", "false", "absent"};
  const bool taken = scope.axes->find(name) != nullptr || variable_type(name) || function_named(name) != nullptr ||
                     std::find(keywords.begin(), keywords.end(), name) != keywords.end();
  if (!word || taken)
    throw InputError({.what = "`" + name + "` can't be a define's name", .got = taken ? "a name that has a meaning already" : name,
                      .want = "letters, digits and _, and no axis, variable, function or keyword", .why = "", .next = "choose another name", .place = origin.at(0)});
  scope.defines[name] = Expression::any(text, scope, origin).syntax();
}

std::vector<Value> input_values(std::span<const Input> inputs, const Case& test_case, const Machine& machine) {
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

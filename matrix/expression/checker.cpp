#include "matrix/expression/checker.h"

#include <algorithm>
#include <optional>
#include <string>

#include "matrix/expression/expression_type.h"

namespace graphproof::matrix {
namespace {

constexpr std::size_t kMaximumNodes = 20000;  // defines are expanded, so their sizes multiply

// Prints full(block, 2) without blanks, as an axis spells it.
std::string compact(const Syntax& syntax) {
  std::string text = print_syntax(syntax);
  text.erase(std::remove(text.begin(), text.end(), ' '), text.end());
  return text;
}

class Checker {
 public:
  using Node = ExpressionNode;
  using NodePtr = std::shared_ptr<const Node>;
  struct Typed {
    std::shared_ptr<Node> node;
    Type type;
  };

  Checker(const Scope& scope, const Origin& origin) : scope_(scope), origin_(origin) {}

  Checked run(const Syntax& syntax, bool condition) {
    Typed root = condition ? boolean(syntax, "a condition") : check(syntax);
    if (root.type.kind == Type::unresolved) unknown_name(*root.type.literal);
    return {std::move(root.node), std::move(inputs_)};
  }

  Checked run_value(const Syntax& syntax, const Axis& axis) {
    Typed root = check(syntax);
    const Type type = type_of(axis, axis.name);
    if (root.type.kind == Type::unresolved)
      root.node = resolve(*root.type.literal, type);
    else if (!comparable(root.type, type))
      fail(syntax, root.type.label + " is no value of " + type.label, kind_text(root.type.kind),
           kind_text(type.kind), "types are strict: \"4\" is not 4",
           "write a value that " + type.label + " can take");
    return {std::move(root.node), std::move(inputs_)};
  }

 private:
  std::size_t offset_of(const Syntax& syntax) const {
    return define_offset_ ? *define_offset_ : syntax.offset;
  }

  [[noreturn]] void fail(const Syntax& at, std::string what, std::string got, std::string want,
                         std::string why, std::string next) const {
    throw InputError({.what = std::move(what),
                      .got = std::move(got),
                      .want = std::move(want),
                      .why = std::move(why),
                      .next = std::move(next),
                      .place = origin_.at(offset_of(at))});
  }

  [[noreturn]] void unknown_name(const Syntax& literal) const {
    if (literal.kind == SyntaxKind::call) {
      std::vector<std::string> functions;
      for (const FunctionEntry& entry : kFunctions) functions.emplace_back(entry.name);
      fail(literal, "unknown function `" + literal.text + "`", literal.text,
           "one of " + listed(functions), "",
           suggestion(literal.text, functions, "use one of them"));
    }
    if (literal.kind == SyntaxKind::set)
      fail(literal, "a set in place of a single value", compact(literal),
           "`x in {a, b}` or `axis == {a, b}`", "", "use `in` with the set on its right");
    if (literal.kind == SyntaxKind::text)
      fail(literal, "a text that is compared with nothing", "\"" + literal.text + "\"",
           "an axis to compare it with", "", "compare it with an axis");
    std::vector<std::string> names = scope_.axes->names();
    names.insert(names.end(), variable_names().begin(), variable_names().end());
    for (const auto& [name, define] : scope_.defines) names.push_back(name);
    fail(literal, "unknown name `" + literal.text + "`", literal.text,
         "an axis, a variable, a define, or a value compared with an axis",
         "a bare word is a value only where it is compared with an axis",
         suggestion(literal.text, names, "`graphproof list axes` shows every axis and its values"));
  }

  std::shared_ptr<Node> node(const Syntax& syntax, std::vector<NodePtr> children = {}) {
    if (++nodes_ > kMaximumNodes)
      fail(syntax, "an expression that grows too large",
           "more than " + std::to_string(kMaximumNodes) + " parts once defines are expanded",
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
    const auto found = std::find_if(inputs_.begin(), inputs_.end(),
                                    [&](const Input& known) { return known.name == input.name; });
    result->input = static_cast<std::size_t>(found - inputs_.begin());
    if (found == inputs_.end()) inputs_.push_back(std::move(input));
    return {result, std::move(type)};
  }

  Typed name(const Syntax& syntax) {
    if (const auto define = scope_.defines.find(syntax.text); define != scope_.defines.end()) {
      // A problem inside a define is reported where the define is used: on its own it was checked
      // when it
      // was added.
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
      if (*type == VariableType::device)
        return input(syntax, variable,
                     {.kind = Type::choice, .label = label, .words = {"sim", "cuda"}});
      return input(
          syntax, variable,
          {.kind = *type == VariableType::integer ? Type::integer : Type::version, .label = label});
    }
    if (syntax.text.find('.') != std::string::npos)
      scope_.axes->at(syntax.text, origin_.at(offset_of(syntax)));
    const Axis* axis = scope_.axes->find(syntax.text);
    if (axis == nullptr)
      return {nullptr,
              {.kind = Type::unresolved, .label = "`" + syntax.text + "`", .literal = &syntax}};
    return input(syntax,
                 {.name = syntax.text, .machine = false, .default_value = axis->default_value},
                 type_of(*axis, syntax.text));
  }

  Type type_of(const Axis& axis, const std::string& name) const {
    return matrix::type_of(axis, scope_.axes->noun() + " `" + name + "`");
  }

  Typed check(const Syntax& syntax) {
    switch (syntax.kind) {
      case SyntaxKind::integer:
        return constant(syntax, syntax.number,
                        {.kind = Type::integer, .label = std::to_string(syntax.number)});
      case SyntaxKind::boolean:
        return constant(syntax, syntax.number != 0,
                        {.kind = Type::boolean, .label = print_syntax(syntax)});
      case SyntaxKind::version:
        return constant(syntax, *parse_version(syntax.text),
                        {.kind = Type::version, .label = syntax.text});
      case SyntaxKind::absent:
        return constant(syntax, Absent{}, {.kind = Type::absent, .label = "absent"});
      case SyntaxKind::text:
        return {nullptr,
                {.kind = Type::unresolved, .label = "\"" + syntax.text + "\"", .literal = &syntax}};
      case SyntaxKind::set:
        return {nullptr,
                {.kind = Type::unresolved, .label = print_syntax(syntax), .literal = &syntax}};
      case SyntaxKind::word:
        return name(syntax);
      case SyntaxKind::call:
        return call(syntax);
      case SyntaxKind::not_:
        return {node(syntax, {boolean(*syntax.children[0], "the operand of `not`").node}),
                {.kind = Type::boolean, .label = "`not`"}};
      case SyntaxKind::negate:
        return {node(syntax, {integer(*syntax.children[0], "the operand of `-`").node}),
                {.kind = Type::integer, .label = "a number"}};
      case SyntaxKind::multiply:
      case SyntaxKind::divide:
      case SyntaxKind::remainder:
      case SyntaxKind::add:
      case SyntaxKind::subtract: {
        const std::string where = "an operand of `" + std::string(operator_text(syntax.kind)) + "`";
        const Typed left = integer(*syntax.children[0], where),
                    right = integer(*syntax.children[1], where);
        return {node(syntax, {left.node, right.node}),
                {.kind = Type::integer, .label = "a number"}};
      }
      case SyntaxKind::and_:
      case SyntaxKind::or_:
      case SyntaxKind::implies: {
        const std::string where = "an operand of `" + std::string(operator_text(syntax.kind)) + "`";
        const Typed left = boolean(*syntax.children[0], where),
                    right = boolean(*syntax.children[1], where);
        return {node(syntax, {left.node, right.node}),
                {.kind = Type::boolean, .label = "a condition"}};
      }
      case SyntaxKind::in:
        return membership(syntax);
      default:
        return comparison(syntax);
    }
  }

  Typed typed(const Syntax& syntax, Type::Kind kind, const std::string& where,
              const std::string& next) {
    Typed result = check(syntax);
    if (result.type.kind == Type::unresolved) unknown_name(*result.type.literal);
    if (result.type.kind != kind)
      fail(syntax, result.type.label + " is no " + (kind == Type::boolean ? "condition" : "number"),
           kind_text(result.type.kind), std::string(kind_text(kind)) + " as " + where, "", next);
    return result;
  }
  Typed boolean(const Syntax& syntax, const std::string& where) {
    return typed(syntax, Type::boolean, where, "compare it with a value");
  }
  Typed integer(const Syntax& syntax, const std::string& where) {
    return typed(syntax, Type::integer, where, "use a number or an integer axis");
  }

  Typed call(const Syntax& syntax) {
    const FunctionEntry* entry = function_named(syntax.text);
    if (entry == nullptr)
      return {nullptr,
              {.kind = Type::unresolved, .label = print_syntax(syntax), .literal = &syntax}};
    const std::size_t count = syntax.children.size();
    if (count < entry->least || count > entry->most)
      fail(syntax, "`" + syntax.text + "` with " + std::to_string(count) + " arguments",
           std::to_string(count),
           entry->least == entry->most ? std::to_string(entry->least)
                                       : "at least " + std::to_string(entry->least),
           "", "correct the arguments");
    auto result = node(syntax);
    result->function = entry->function;
    const std::string where = "an argument of `" + syntax.text + "`";
    Type type{.kind = Type::integer, .label = "`" + syntax.text + "`"};
    const auto operand_of = [&](std::size_t index, Type::Kind wanted) {
      const Syntax& argument = *syntax.children[index];
      const Typed operand = check(argument);
      if (operand.type.kind == Type::unresolved) unknown_name(*operand.type.literal);
      if (operand.type.kind != wanted)
        fail(argument, operand.type.label + " is no argument of `" + syntax.text + "`",
             kind_text(operand.type.kind), kind_text(wanted), "", "use an axis of that type");
      result->children.push_back(operand.node);
      return operand.type;
    };
    switch (entry->signature) {
      case Signature::integers:
      case Signature::integers_to_truth:
        for (const auto& child : syntax.children)
          result->children.push_back(integer(*child, where).node);
        if (entry->signature == Signature::integers_to_truth) type.kind = Type::boolean;
        break;
      case Signature::set_to_integer:
        operand_of(0, Type::set);
        break;
      case Signature::call_to_word:
        type.kind = Type::choice;
        for (const CallForm& form : operand_of(0, Type::call).axis->calls)
          type.words.push_back(form.word);
        break;
      case Signature::texts_to_truth:
        type.kind = Type::boolean;
        for (const auto& child : syntax.children)
          result->children.push_back(text(*child, syntax.text));
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
        if (other.type.kind == Type::unresolved)
          result->children.push_back(resolve(*other.type.literal, set));
        else
          operand_of(1, Type::set);
        type.kind = Type::boolean;
        break;
      }
      case Signature::elements: {
        type = operand_of(0, Type::set);
        for (std::size_t i = 1; i < count; ++i) {
          const Typed element = check(*syntax.children[i]);
          if (element.type.kind == Type::unresolved)
            result->children.push_back(resolve(*element.type.literal, element_of(type)));
          else if (comparable(element.type, element_of(type)))
            result->children.push_back(element.node);
          else
            fail(*syntax.children[i], element.type.label + " is no value of " + type.label,
                 kind_text(element.type.kind), "a value of " + type.label, "",
                 "choose one of its values");
        }
        break;
      }
    }
    return {result, type};
  }

  NodePtr text(const Syntax& argument, const std::string& function) {
    const Typed operand = check(argument);
    if (operand.type.kind == Type::unresolved && operand.type.literal->kind == SyntaxKind::text)
      return constant(argument, argument.text, {}).node;
    if (operand.type.kind == Type::unresolved) unknown_name(*operand.type.literal);
    if (operand.type.kind != Type::text && operand.type.kind != Type::choice)
      fail(argument, operand.type.label + " is no argument of `" + function + "`",
           kind_text(operand.type.kind), "a text", "",
           "use a text in quotes, or something that is one");
    return operand.node;
  }

  // The constant that `literal` means when it is compared with an operand of type `against`.
  std::shared_ptr<Node> resolve(const Syntax& literal, const Type& against) {
    const auto wrong = [&](const std::string& want) {
      fail(literal, print_syntax(literal) + " can't be compared with " + against.label,
           print_syntax(literal), want, "types are strict: \"4\" is not 4", "write " + want);
    };
    const bool word = literal.kind == SyntaxKind::word || literal.kind == SyntaxKind::text;
    switch (against.kind) {
      case Type::choice:
        if (!word)
          wrong("one of " + listed(against.words) +
                (literal.kind == SyntaxKind::set ? " (or use `in`)" : ""));
        if (std::find(against.words.begin(), against.words.end(), literal.text) ==
            against.words.end())
          fail(literal, "`" + literal.text + "` is no value of " + against.label, literal.text,
               "one of " + listed(against.words), "",
               suggestion(literal.text, against.words, "choose one of them"));
        return constant(literal, literal.text, {}).node;
      case Type::text:
        if (!word) wrong("a text");
        return constant(literal, literal.text, {}).node;
      case Type::number:
        if (literal.kind != SyntaxKind::version ||
            literal.text.find_first_not_of("0123456789.") != std::string::npos)
          wrong("a number");
        return constant(literal, std::stod(literal.text), {}).node;
      case Type::call: {
        if (!word && literal.kind != SyntaxKind::call)
          wrong("one of " + listed(against.axis->values));
        const std::string text = literal.kind == SyntaxKind::call ? compact(literal) : literal.text;
        return constant(literal,
                        parse_value_text(*against.axis, against.axis->name, text,
                                         origin_.at(offset_of(literal))),
                        {})
            .node;
      }
      case Type::set: {
        if (literal.kind != SyntaxKind::set) wrong("a set of " + listed(against.words));
        Json elements = Json::array();
        for (const auto& child : literal.children) {
          if (child->kind != SyntaxKind::word && child->kind != SyntaxKind::text)
            fail(*child, print_syntax(*child) + " is no value of " + against.label,
                 print_syntax(*child),
                 against.words.empty() ? "a text" : "one of " + listed(against.words), "",
                 "choose one of them");
          elements.push_back(child->text);
        }
        // The set that items() gives belongs to no axis.
        if (against.axis == nullptr)
          return constant(literal, elements.get<std::vector<std::string>>(), {}).node;
        return constant(literal,
                        parse_value(*against.axis, against.axis->name, elements,
                                    origin_.at(offset_of(literal))),
                        {})
            .node;
      }
      default:
        if (literal.kind == SyntaxKind::word) unknown_name(literal);
        wrong(kind_text(against.kind));
    }
    return nullptr;
  }

  [[noreturn]] void incomparable(const Syntax& syntax, const Type& left, const Type& right) const {
    std::string next = "compare values of one type";
    // In `model == collective` the word names an axis, although the user meant the value.
    const Syntax& right_syntax = *syntax.children[1];
    if (right_syntax.kind == SyntaxKind::word &&
        std::find(left.words.begin(), left.words.end(), right_syntax.text) != left.words.end())
      next = "`" + right_syntax.text + "` names an axis; write \"" + right_syntax.text +
             "\" for the value";
    const std::string quoted =
        right.kind == Type::integer && right_syntax.kind == SyntaxKind::integer
            ? std::to_string(right_syntax.number)
            : "";
    if (std::find(left.words.begin(), left.words.end(), quoted) != left.words.end())
      next = "write \"" + quoted + "\" for the value";
    if (left.kind == Type::text && !quoted.empty()) next = "write \"" + quoted + "\" for the text";
    fail(syntax, left.label + " can't be compared with " + right.label,
         std::string(kind_text(left.kind)) + " and " + kind_text(right.kind),
         "two operands of one type", "types are strict: \"4\" is not 4", next);
  }

  // 0.5 reads as a version until the other operand turns out to be a floating-point number.
  void read_as_number(const Syntax& literal, Typed& side, const Type& other) {
    if (literal.kind == SyntaxKind::version && other.kind == Type::number)
      side = {resolve(literal, other), other};
  }

  Typed comparison(const Syntax& syntax) {
    Typed left = check(*syntax.children[0]), right = check(*syntax.children[1]);
    read_as_number(*syntax.children[0], left, right.type);
    read_as_number(*syntax.children[1], right, left.type);
    const bool left_open = left.type.kind == Type::unresolved,
               right_open = right.type.kind == Type::unresolved;
    if (left_open && right_open)
      unknown_name(left.type.literal->kind == SyntaxKind::word ? *left.type.literal
                                                               : *right.type.literal);
    if (left_open)
      left = {resolve(*left.type.literal, right.type), right.type};
    else if (right_open)
      right = {resolve(*right.type.literal, left.type), left.type};
    else if (!comparable(left.type, right.type))
      incomparable(syntax, left.type, right.type);
    if (syntax.kind != SyntaxKind::equal && syntax.kind != SyntaxKind::unequal) {
      for (const Type* type : {&left.type, &right.type})
        if (type->kind != Type::integer && type->kind != Type::number &&
            type->kind != Type::version)
          fail(
              syntax,
              "`" + std::string(operator_text(syntax.kind)) + "` has no meaning for " + type->label,
              kind_text(type->kind), "numbers or versions", "", "use ==, != or in");
    }
    return {node(syntax, {left.node, right.node}),
            {.kind = Type::boolean, .label = "a comparison"}};
  }

  // The right operand of `in` is a set literal or an axis. In the checked tree children[0] is
  // sought among the other children (a set literal) or in children[1] (an axis).
  Typed membership(const Syntax& syntax) {
    const Typed left = check(*syntax.children[0]), right = check(*syntax.children[1]);
    const Type result{.kind = Type::boolean, .label = "a comparison"};
    if (right.type.kind == Type::unresolved && right.type.literal->kind == SyntaxKind::set) {
      if (left.type.kind == Type::unresolved) unknown_name(*left.type.literal);
      std::vector<NodePtr> children{left.node};
      for (const auto& element : syntax.children[1]->children) {
        const Typed typed = check(*element);
        if (typed.type.kind == Type::unresolved)
          children.push_back(resolve(*typed.type.literal, left.type));
        else if (comparable(left.type, typed.type))
          children.push_back(typed.node);
        else
          fail(*element, typed.type.label + " can't be compared with " + left.type.label,
               kind_text(typed.type.kind), kind_text(left.type.kind),
               "types are strict: \"4\" is not 4", "compare values of one type");
      }
      auto found = node(syntax, std::move(children));
      found->reads_input = false;
      return {found, result};
    }
    if (right.type.kind == Type::unresolved) unknown_name(*right.type.literal);
    if (right.type.kind != Type::set && right.type.kind != Type::call)
      fail(syntax, "nothing is `in` " + right.type.label, kind_text(right.type.kind),
           "a set, a set axis or a call axis", "", "use ==");
    const Type element = element_of(right.type);
    NodePtr sought = left.node;
    if (left.type.kind == Type::unresolved)
      sought = resolve(*left.type.literal, element);
    else if (!comparable(left.type, element))
      incomparable(syntax, left.type, element);
    auto found = node(syntax, {sought, right.node});
    found->function = Function::word;  // marks for evaluation.cpp that children[1] is an axis
    return {found, result};
  }

  const Scope& scope_;
  const Origin& origin_;
  std::vector<Input> inputs_;
  std::optional<std::size_t> define_offset_;
  std::size_t nodes_ = 0;
};

}  // namespace

Checked check(const Syntax& syntax, bool condition, const Scope& scope, const Origin& origin) {
  return Checker(scope, origin).run(syntax, condition);
}

Checked check_value(const Syntax& syntax, const Axis& axis, const Scope& scope,
                    const Origin& origin) {
  return Checker(scope, origin).run_value(syntax, axis);
}

}  // namespace graphproof::matrix

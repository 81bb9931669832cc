// Prints and compares the trees of the expression language.
#include "matrix/expression/operators.h"
#include "matrix/expression/syntax.h"

namespace graphproof::matrix {
namespace {

using Tree = std::shared_ptr<const Syntax>;

Binding binding_of(SyntaxKind kind) {
  if (const Operator* op = operator_of(kind)) return op->binding;
  if (kind == SyntaxKind::not_) return kNot;
  if (kind == SyntaxKind::negate) return kUnary;
  return kPrimary;
}

std::string print(const Syntax& syntax, Binding least) {
  std::string text;
  const Binding own = binding_of(syntax.kind);
  const auto elements = [&] {
    std::string list;
    for (const Tree& child : syntax.children)
      list += (list.empty() ? "" : ", ") + print(*child, kImplies);
    return list;
  };
  switch (syntax.kind) {
    case SyntaxKind::integer:
      text = std::to_string(syntax.number);
      break;
    case SyntaxKind::boolean:
      text = syntax.number != 0 ? "true" : "false";
      break;
    case SyntaxKind::absent:
      text = "absent";
      break;
    case SyntaxKind::version:
    case SyntaxKind::word:
      text = syntax.text;
      break;
    case SyntaxKind::text:
      text = "\"";
      for (const char c : syntax.text)
        text += (c == '"' || c == '\\' ? std::string("\\") : std::string()) + c;
      text += '"';
      break;
    case SyntaxKind::set:
      text = "{" + elements() + "}";
      break;
    case SyntaxKind::call:
      text = syntax.text + "(" + elements() + ")";
      break;
    case SyntaxKind::not_:
      text = "not " + print(*syntax.children[0], kNot);
      break;
    case SyntaxKind::negate:
      text = "-" + print(*syntax.children[0], kUnary);
      break;
    default: {
      // An operand that must bind tighter than its operator gets parentheses if it does not: the
      // left operand of `implies`, both operands of a comparison, and the right operand of every
      // other operator.
      const auto tighter = static_cast<Binding>(own + 1);
      const bool to_the_right = own == kImplies;
      const bool chains = own != kCompare;
      text = print(*syntax.children[0], chains && !to_the_right ? own : tighter) + " " +
             std::string(operator_text(syntax.kind)) + " " +
             print(*syntax.children[1], to_the_right ? own : tighter);
    }
  }
  return own < least ? "(" + text + ")" : text;
}

}  // namespace

std::string_view operator_text(SyntaxKind kind) {
  if (const Operator* op = operator_of(kind)) return op->text;
  return kind == SyntaxKind::not_ ? "not" : kind == SyntaxKind::negate ? "-" : "";
}

std::string print_syntax(const Syntax& syntax) { return print(syntax, kImplies); }

bool same_syntax(const Syntax& left, const Syntax& right) {
  if (left.kind != right.kind || left.text != right.text || left.number != right.number ||
      left.children.size() != right.children.size())
    return false;
  for (std::size_t i = 0; i < left.children.size(); ++i)
    if (!same_syntax(*left.children[i], *right.children[i])) return false;
  return true;
}

}  // namespace graphproof::matrix

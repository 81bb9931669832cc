#include "matrix/expression/syntax.h"

#include <optional>
#include <utility>

#include "matrix/expression/operators.h"
#include "matrix/expression/token.h"

namespace graphproof::matrix {
namespace {

constexpr int kMaximumNesting = 200;  // of parentheses and operators; bounds the recursion
constexpr std::size_t kMaximumExpression_bytes =
    16 * 1024;  // of one expression; also bounds the depth of its tree

using Tree = std::shared_ptr<const Syntax>;

class SyntaxParser {
 public:
  SyntaxParser(std::string_view text, const Origin& origin)
      : lexer_(text, origin), token_(lexer_.next()) {}

  Tree run() {
    if (token_.kind == TokenKind::end)
      lexer_.fail(0, "an empty expression", "nothing", "a condition", "write one, or `true`");
    Tree tree = binary(kImplies);
    if (token_.kind != TokenKind::end) unexpected("an operator or the end of the expression");
    return tree;
  }

 private:
  struct Depth {
    explicit Depth(SyntaxParser& parser) : parser(parser) {
      if (++parser.depth_ > kMaximumNesting)
        parser.lexer_.fail(parser.token_.offset, "an expression nested too deeply",
                           std::to_string(parser.depth_) + " levels",
                           "at most " + std::to_string(kMaximumNesting) + " levels",
                           "split it with `define`");
    }
    ~Depth() { --parser.depth_; }
    SyntaxParser& parser;
  };

  [[noreturn]] void unexpected(std::string want) const {
    const std::string got = token_.kind == TokenKind::end ? token_.text : "`" + token_.text + "`";
    std::string next = "correct the expression";
    if (token_.kind == TokenKind::word && (token_.text == "AND" || token_.text == "OR" ||
                                           token_.text == "NOT" || token_.text == "IN"))
      next = "write operators in small letters";
    lexer_.fail(token_.offset, "the expression breaks off at " + got, got, std::move(want), next);
  }

  void advance() { token_ = lexer_.next(); }
  bool is(std::string_view text) const {
    return (token_.kind == TokenKind::symbol || token_.kind == TokenKind::word) &&
           token_.text == text;
  }

  static Tree make(SyntaxKind kind, std::size_t offset, std::string text,
                   std::vector<Tree> children, std::int64_t number = 0) {
    return std::make_shared<const Syntax>(
        Syntax{kind, offset, std::move(text), number, std::move(children)});
  }

  const Operator* current(Binding binding) const {
    for (const Operator& op : kOperators)
      if (op.binding == binding && is(op.text)) return &op;
    return nullptr;
  }

  Tree binary(Binding binding) {
    if (binding == kNot) return negation();
    if (binding == kUnary) return unary();
    std::optional<Depth> depth;
    if (binding == kImplies) depth.emplace(*this);
    const auto tighter = static_cast<Binding>(binding + 1);
    Tree left = binary(tighter);
    int chained = 0;
    while (const Operator* op = current(binding)) {
      const std::size_t offset = token_.offset;
      if (binding == kCompare && chained > 0)
        lexer_.fail(offset, "comparisons can't be chained",
                    "a second `" + std::string(op->text) + "`", "one comparison",
                    "join two with `and`");
      // A chain of one operator nests to the left: printing and checking it recurse once a link.
      if (++chained > kMaximumNesting)
        lexer_.fail(offset, "an expression nested too deeply",
                    std::to_string(chained) + " operators in a row",
                    "at most " + std::to_string(kMaximumNesting),
                    "use a set with `in`, or `define`");
      advance();
      Tree right = binary(binding == kImplies ? kImplies : tighter);
      left = make(op->kind, offset, "", {left, right});
    }
    return left;
  }

  Tree negation() {
    if (!is("not")) return binary(kCompare);
    const Depth depth(*this);
    const std::size_t offset = token_.offset;
    advance();
    return make(SyntaxKind::not_, offset, "", {binary(kNot)});
  }

  Tree unary() {
    if (!is("-")) return primary();
    const Depth depth(*this);
    const std::size_t offset = token_.offset;
    advance();
    return make(SyntaxKind::negate, offset, "", {binary(kUnary)});
  }

  std::vector<Tree> list(std::string_view close, std::string_view what) {
    std::vector<Tree> elements;
    advance();
    if (is(close)) {
      advance();
      return elements;
    }
    while (true) {
      elements.push_back(binary(kImplies));
      if (is(close)) {
        advance();
        return elements;
      }
      if (!is(",")) unexpected("`,` or `" + std::string(close) + "` in " + std::string(what));
      advance();
    }
  }

  Tree primary() {
    const Token token = token_;
    switch (token.kind) {
      case TokenKind::integer:
        advance();
        return make(SyntaxKind::integer, token.offset, "", {}, token.number);
      case TokenKind::version:
        advance();
        return make(SyntaxKind::version, token.offset, token.text, {});
      case TokenKind::text:
        advance();
        return make(SyntaxKind::text, token.offset, token.text, {});
      case TokenKind::word:
        break;
      case TokenKind::symbol:
        if (token.text == "(") {
          advance();
          Tree inside = binary(kImplies);
          if (!is(")")) unexpected("`)`");
          advance();
          return inside;
        }
        if (token.text == "{") return make(SyntaxKind::set, token.offset, "", list("}", "a set"));
        if (token.text == "[") return make(SyntaxKind::set, token.offset, "", list("]", "a set"));
        unexpected("a name, a number, a text, a set or `(`");
      case TokenKind::end:
        unexpected("a name, a number, a text, a set or `(`");
    }
    for (const std::string_view keyword : {"and", "or", "not", "implies", "in"})
      if (token.text == keyword) unexpected("a name, a number, a text, a set or `(`");
    advance();
    if (token.text == "true" || token.text == "false")
      return make(SyntaxKind::boolean, token.offset, "", {}, token.text == "true");
    if (token.text == "absent") return make(SyntaxKind::absent, token.offset, "", {});
    if (is("("))
      return make(SyntaxKind::call, token.offset, token.text, list(")", "an argument list"));
    return make(SyntaxKind::word, token.offset, token.text, {});
  }

  Lexer lexer_;
  Token token_;
  int depth_ = 0;
};

}  // namespace

std::shared_ptr<const Syntax> parse_syntax(std::string_view text, const Origin& origin) {
  if (text.size() > kMaximumExpression_bytes)
    throw InputError({.what = "an expression that is too long",
                      .got = std::to_string(text.size()) + " bytes",
                      .want = "at most " + std::to_string(kMaximumExpression_bytes) + " bytes",
                      .why = "",
                      .next = "split it with `define`",
                      .place = origin.at(0)});
  return SyntaxParser(text, origin).run();
}

}  // namespace graphproof::matrix

#include "matrix/syntax.h"

#include <array>
#include <charconv>
#include <optional>
#include <utility>

#include "matrix/version.h"

namespace graphproof::matrix {
namespace {

constexpr int kMaximumDepth = 200;               // parentheses and operators inside each other; bounds the recursion
constexpr std::size_t kMaximumBytes = 16 * 1024;  // of one expression; also bounds the depth of its tree

// Binding of binary operators, tightest last. `not` binds between `and` and the comparisons.
enum Binding { kImplies, kOr, kAnd, kNot, kCompare, kAdd, kMultiply, kUnary, kPrimary };

struct Operator {
  std::string_view text;
  SyntaxKind kind;
  Binding binding;
};
constexpr std::array<Operator, 15> kOperators = {{
    {"implies", SyntaxKind::implies, kImplies}, {"or", SyntaxKind::or_, kOr}, {"and", SyntaxKind::and_, kAnd},
    {"==", SyntaxKind::equal, kCompare}, {"!=", SyntaxKind::unequal, kCompare}, {"<=", SyntaxKind::less_equal, kCompare},
    {"<", SyntaxKind::less, kCompare}, {">=", SyntaxKind::greater_equal, kCompare}, {">", SyntaxKind::greater, kCompare},
    {"in", SyntaxKind::in, kCompare}, {"+", SyntaxKind::add, kAdd}, {"-", SyntaxKind::subtract, kAdd},
    {"*", SyntaxKind::multiply, kMultiply}, {"/", SyntaxKind::divide, kMultiply}, {"%", SyntaxKind::remainder, kMultiply},
}};

const Operator* operator_of(SyntaxKind kind) {
  for (const Operator& op : kOperators)
    if (op.kind == kind) return &op;
  return nullptr;
}

bool letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool digit(char c) { return c >= '0' && c <= '9'; }

enum class TokenKind { end, word, integer, version, text, symbol };

struct Token {
  TokenKind kind = TokenKind::end;
  std::string text;
  std::int64_t number = 0;
  std::size_t offset = 0;
};

class Lexer {
 public:
  Lexer(std::string_view text, const Origin& origin) : text_(text), origin_(origin) {}

  [[noreturn]] void fail(std::size_t offset, std::string what, std::string got, std::string want, std::string next) const {
    throw InputError({.what = std::move(what), .got = std::move(got), .want = std::move(want), .why = "",
                      .next = std::move(next), .place = origin_.at(offset)});
  }

  Token next() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\n' || text_[at_] == '\r')) ++at_;
    const std::size_t begin = at_;
    if (at_ >= text_.size()) return {.kind = TokenKind::end, .text = "the end of the expression", .number = 0, .offset = begin};
    const char c = text_[at_];
    if (letter(c)) {
      while (at_ < text_.size() && (letter(text_[at_]) || digit(text_[at_]) || (text_[at_] == '.' && at_ + 1 < text_.size() && letter(text_[at_ + 1])))) ++at_;
      return {.kind = TokenKind::word, .text = std::string(text_.substr(begin, at_ - begin)), .number = 0, .offset = begin};
    }
    if (digit(c)) return number(begin);
    if (c == '"' || c == '\'') return quoted(begin, c);
    for (const std::string_view symbol : {"==", "!=", "<=", ">=", "<", ">", "+", "-", "*", "/", "%", "(", ")", "{", "}", "[", "]", ","}) {
      if (text_.substr(at_, symbol.size()) == symbol) {
        at_ += symbol.size();
        return {.kind = TokenKind::symbol, .text = std::string(symbol), .number = 0, .offset = begin};
      }
    }
    std::size_t length = 1;
    while (begin + length < text_.size() && (static_cast<unsigned char>(text_[begin + length]) & 0xC0) == 0x80) ++length;
    const std::string got(text_.substr(begin, length));
    const std::string next = got == "=" ? "write == for equality" : got == "&" ? "write and" : got == "|" ? "write or" : got == "!" ? "write not" : "remove it";
    fail(begin, "`" + got + "` has no meaning in an expression", "`" + got + "`", "names, numbers, \"text\", sets and operators", next);
  }

 private:
  Token number(std::size_t begin) {
    bool dotted = false;
    while (at_ < text_.size() && (digit(text_[at_]) || (text_[at_] == '.' && at_ + 1 < text_.size() && digit(text_[at_ + 1])))) dotted |= text_[at_++] == '.';
    if (dotted)
      while (at_ < text_.size() && (letter(text_[at_]) || digit(text_[at_]))) ++at_;  // 2.12.0a0
    const std::string literal(text_.substr(begin, at_ - begin));
    if (at_ < text_.size() && letter(text_[at_])) {
      while (at_ < text_.size() && (letter(text_[at_]) || digit(text_[at_]))) ++at_;
      const std::string got(text_.substr(begin, at_ - begin));
      fail(begin, "`" + got + "` is neither a number nor a name", got, "a number, a name or a text", "put it into quotes: \"" + got + "\"");
    }
    if (dotted) {
      if (!parse_version(literal)) fail(begin, "a version that can't be read", literal, "digits and dots, then perhaps a0, rc1 or dev1", "write it as 2.11.0");
      return {.kind = TokenKind::version, .text = literal, .number = 0, .offset = begin};
    }
    std::int64_t value = 0;
    if (std::from_chars(literal.data(), literal.data() + literal.size(), value).ec != std::errc())
      fail(begin, "the number " + literal + " is out of range", literal, "a 64-bit integer", "use a smaller number");
    return {.kind = TokenKind::integer, .text = literal, .number = value, .offset = begin};
  }

  Token quoted(std::size_t begin, char quote) {
    std::string content;
    for (++at_; at_ < text_.size(); ++at_) {
      if (text_[at_] == quote) {
        ++at_;
        return {.kind = TokenKind::text, .text = content, .number = 0, .offset = begin};
      }
      if (text_[at_] == '\\' && at_ + 1 < text_.size()) ++at_;
      content += text_[at_];
    }
    fail(begin, "a text without an end", std::string(text_.substr(begin)), std::string("a closing ") + quote, "close the text");
  }

  std::string_view text_;
  const Origin& origin_;
  std::size_t at_ = 0;
};

using Tree = std::shared_ptr<const Syntax>;

class SyntaxParser {
 public:
  SyntaxParser(std::string_view text, const Origin& origin) : lexer_(text, origin), token_(lexer_.next()) {}

  Tree run() {
    if (token_.kind == TokenKind::end) lexer_.fail(0, "an empty expression", "nothing", "a condition", "write one, or `true`");
    Tree tree = binary(kImplies);
    if (token_.kind != TokenKind::end) unexpected("an operator or the end of the expression");
    return tree;
  }

 private:
  struct Depth {
    explicit Depth(SyntaxParser& parser) : parser(parser) {
      if (++parser.depth_ > kMaximumDepth)
        parser.lexer_.fail(parser.token_.offset, "an expression nested too deeply", std::to_string(parser.depth_) + " levels",
                           "at most " + std::to_string(kMaximumDepth) + " levels", "split it with `define`");
    }
    ~Depth() { --parser.depth_; }
    SyntaxParser& parser;
  };

  [[noreturn]] void unexpected(std::string want) const {
    const std::string got = token_.kind == TokenKind::end ? token_.text : "`" + token_.text + "`";
    std::string next = "correct the expression";
    if (token_.kind == TokenKind::word && (token_.text == "AND" || token_.text == "OR" || token_.text == "NOT" || token_.text == "IN")) next = "write operators in small letters";
    lexer_.fail(token_.offset, "the expression breaks off at " + got, got, std::move(want), next);
  }

  void advance() { token_ = lexer_.next(); }
  bool is(std::string_view text) const { return (token_.kind == TokenKind::symbol || token_.kind == TokenKind::word) && token_.text == text; }

  static Tree make(SyntaxKind kind, std::size_t offset, std::string text, std::vector<Tree> children, std::int64_t number = 0) {
    return std::make_shared<const Syntax>(Syntax{kind, offset, std::move(text), number, std::move(children)});
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
        lexer_.fail(offset, "comparisons can't be chained", "a second `" + std::string(op->text) + "`", "one comparison", "join two with `and`");
      // A chain of one operator nests to the left and would recurse later in printing and checking.
      if (++chained > kMaximumDepth)
        lexer_.fail(offset, "an expression nested too deeply", std::to_string(chained) + " operators in a row",
                    "at most " + std::to_string(kMaximumDepth), "use a set with `in`, or `define`");
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
      case TokenKind::integer: advance(); return make(SyntaxKind::integer, token.offset, "", {}, token.number);
      case TokenKind::version: advance(); return make(SyntaxKind::version, token.offset, token.text, {});
      case TokenKind::text: advance(); return make(SyntaxKind::text, token.offset, token.text, {});
      case TokenKind::word: break;
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
      case TokenKind::end: unexpected("a name, a number, a text, a set or `(`");
    }
    for (const std::string_view keyword : {"and", "or", "not", "implies", "in"})
      if (token.text == keyword) unexpected("a name, a number, a text, a set or `(`");
    advance();
    if (token.text == "true" || token.text == "false") return make(SyntaxKind::boolean, token.offset, "", {}, token.text == "true");
    if (token.text == "absent") return make(SyntaxKind::absent, token.offset, "", {});
    if (is("(")) return make(SyntaxKind::call, token.offset, token.text, list(")", "an argument list"));
    return make(SyntaxKind::word, token.offset, token.text, {});
  }

  Lexer lexer_;
  Token token_;
  int depth_ = 0;
};

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
    for (const Tree& child : syntax.children) list += (list.empty() ? "" : ", ") + print(*child, kImplies);
    return list;
  };
  switch (syntax.kind) {
    case SyntaxKind::integer: text = std::to_string(syntax.number); break;
    case SyntaxKind::boolean: text = syntax.number != 0 ? "true" : "false"; break;
    case SyntaxKind::absent: text = "absent"; break;
    case SyntaxKind::version:
    case SyntaxKind::word: text = syntax.text; break;
    case SyntaxKind::text:
      text = "\"";
      for (const char c : syntax.text) text += (c == '"' || c == '\\' ? std::string("\\") : std::string()) + c;
      text += '"';
      break;
    case SyntaxKind::set: text = "{" + elements() + "}"; break;
    case SyntaxKind::call: text = syntax.text + "(" + elements() + ")"; break;
    case SyntaxKind::not_: text = "not " + print(*syntax.children[0], kNot); break;
    case SyntaxKind::negate: text = "-" + print(*syntax.children[0], kUnary); break;
    default: {
      // Left operands of `implies`, and both of a comparison, need tighter binding; elsewhere the right one does.
      const auto tighter = static_cast<Binding>(own + 1);
      const bool to_the_right = own == kImplies;
      const bool chains = own != kCompare;
      text = print(*syntax.children[0], chains && !to_the_right ? own : tighter) + " " + std::string(operator_text(syntax.kind)) + " " +
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

std::shared_ptr<const Syntax> parse_syntax(std::string_view text, const Origin& origin) {
  if (text.size() > kMaximumBytes)
    throw InputError({.what = "an expression that is too long", .got = std::to_string(text.size()) + " bytes",
                      .want = "at most " + std::to_string(kMaximumBytes) + " bytes", .why = "", .next = "split it with `define`", .place = origin.at(0)});
  return SyntaxParser(text, origin).run();
}

std::string print_syntax(const Syntax& syntax) { return print(syntax, kImplies); }

bool same_syntax(const Syntax& left, const Syntax& right) {
  if (left.kind != right.kind || left.text != right.text || left.number != right.number || left.children.size() != right.children.size()) return false;
  for (std::size_t i = 0; i < left.children.size(); ++i)
    if (!same_syntax(*left.children[i], *right.children[i])) return false;
  return true;
}

}  // namespace graphproof::matrix

#include "matrix/expression/token.h"

#include <charconv>
#include <utility>

#include "matrix/input/version.h"

namespace graphproof::matrix {
namespace {

bool letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool digit(char c) { return c >= '0' && c <= '9'; }

}  // namespace

void Lexer::fail(std::size_t offset, std::string what, std::string got, std::string want,
                 std::string next) const {
  throw InputError({.what = std::move(what),
                    .got = std::move(got),
                    .want = std::move(want),
                    .why = "",
                    .next = std::move(next),
                    .place = origin_.at(offset)});
}

Token Lexer::next() {
  while (at_ < text_.size() &&
         (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\n' || text_[at_] == '\r'))
    ++at_;
  const std::size_t begin = at_;
  if (at_ >= text_.size())
    return {
        .kind = TokenKind::end, .text = "the end of the expression", .number = 0, .offset = begin};
  const char c = text_[at_];
  if (letter(c)) {
    while (at_ < text_.size() &&
           (letter(text_[at_]) || digit(text_[at_]) ||
            (text_[at_] == '.' && at_ + 1 < text_.size() && letter(text_[at_ + 1]))))
      ++at_;
    return {.kind = TokenKind::word,
            .text = std::string(text_.substr(begin, at_ - begin)),
            .number = 0,
            .offset = begin};
  }
  if (digit(c)) return number(begin);
  if (c == '"' || c == '\'') return quoted(begin, c);
  for (const std::string_view symbol : {"==", "!=", "<=", ">=", "<", ">", "+", "-", "*", "/", "%",
                                        "(", ")", "{", "}", "[", "]", ","}) {
    if (text_.substr(at_, symbol.size()) == symbol) {
      at_ += symbol.size();
      return {.kind = TokenKind::symbol, .text = std::string(symbol), .number = 0, .offset = begin};
    }
  }
  std::size_t length = 1;
  while (begin + length < text_.size() &&
         (static_cast<unsigned char>(text_[begin + length]) & 0xC0) == 0x80)
    ++length;
  const std::string got(text_.substr(begin, length));
  const std::string next = got == "="   ? "write == for equality"
                           : got == "&" ? "write and"
                           : got == "|" ? "write or"
                           : got == "!" ? "write not"
                                        : "remove it";
  fail(begin, "`" + got + "` has no meaning in an expression", "`" + got + "`",
       "names, numbers, \"text\", sets and operators", next);
}

Token Lexer::number(std::size_t begin) {
  bool dotted = false;
  while (at_ < text_.size() && (digit(text_[at_]) || (text_[at_] == '.' && at_ + 1 < text_.size() &&
                                                      digit(text_[at_ + 1]))))
    dotted |= text_[at_++] == '.';
  if (dotted)
    // A pre-release, such as the a0 of 2.12.0a0.
    while (at_ < text_.size() && (letter(text_[at_]) || digit(text_[at_]))) ++at_;
  const std::string literal(text_.substr(begin, at_ - begin));
  if (at_ < text_.size() && letter(text_[at_])) {
    while (at_ < text_.size() && (letter(text_[at_]) || digit(text_[at_]))) ++at_;
    const std::string got(text_.substr(begin, at_ - begin));
    fail(begin, "`" + got + "` is neither a number nor a name", got, "a number, a name or a text",
         "put it into quotes: \"" + got + "\"");
  }
  if (dotted) {
    if (!parse_version(literal))
      fail(begin, "a version that can't be read", literal,
           "digits and dots, then perhaps a0, rc1 or dev1", "write it as 2.11.0");
    return {.kind = TokenKind::version, .text = literal, .number = 0, .offset = begin};
  }
  std::int64_t value = 0;
  if (std::from_chars(literal.data(), literal.data() + literal.size(), value).ec != std::errc())
    fail(begin, "the number " + literal + " is out of range", literal, "a 64-bit integer",
         "use a smaller number");
  return {.kind = TokenKind::integer, .text = literal, .number = value, .offset = begin};
}

Token Lexer::quoted(std::size_t begin, char quote) {
  std::string content;
  for (++at_; at_ < text_.size(); ++at_) {
    if (text_[at_] == quote) {
      ++at_;
      return {.kind = TokenKind::text, .text = content, .number = 0, .offset = begin};
    }
    if (text_[at_] == '\\' && at_ + 1 < text_.size()) ++at_;
    content += text_[at_];
  }
  fail(begin, "an unterminated text", std::string(text_.substr(begin)),
       std::string("a closing ") + quote, "close the text");
}

}  // namespace graphproof::matrix

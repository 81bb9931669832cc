// Splits the text of an expression into words, numbers and signs.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "matrix/input/located_json.h"

namespace graphproof::matrix {

/// The kind of a token; `end` is the end of the text.
enum class TokenKind { end, word, integer, version, text, symbol };

/// A word, number, quoted text or sign. `offset` is the byte where it begins.
struct Token {
  TokenKind kind = TokenKind::end;
  std::string text;
  std::int64_t number = 0;
  std::size_t offset = 0;
};

/// Reads one token after the other.
class Lexer {
 public:
  /// REQUIRES: both outlive the lexer.
  Lexer(std::string_view text, const Origin& origin) : text_(text), origin_(origin) {}

  /// The next token. Throws InputError for a sign that the language does not have, a number out of
  /// range, or an unterminated text.
  Token next();
  /// Throws InputError at `offset`.
  [[noreturn]] void fail(std::size_t offset, std::string what, std::string got, std::string want,
                         std::string next) const;

 private:
  Token number(std::size_t begin);
  Token quoted(std::size_t begin, char quote);

  std::string_view text_;
  const Origin& origin_;
  std::size_t at_ = 0;
};

}  // namespace graphproof::matrix

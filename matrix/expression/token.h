// The words and signs of an expression's text, each with the byte where it begins.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "matrix/input/located_json.h"

namespace graphproof::matrix {

enum class TokenKind { end, word, integer, version, text, symbol };

struct Token {
  TokenKind kind = TokenKind::end;
  std::string text;
  std::int64_t number = 0;
  std::size_t offset = 0;
};

class Lexer {
 public:
  /// REQUIRES: both outlive the lexer.
  Lexer(std::string_view text, const Origin& origin) : text_(text), origin_(origin) {}

  /// Throws InputError for a sign without a meaning, a number out of range, a text without an end.
  Token next();
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

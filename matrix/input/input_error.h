// The one exception for mistakes in what a user wrote: what / got / want / why / next, with the
// place in the text. The programs catch it in main, print what() and end with exit code 2.
#pragma once

#include <nlohmann/json.hpp>

#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace graphproof::matrix {

/// A place in a text. Line and column count from 1, and columns count characters. Line 0 means that
/// there is no place.
struct Place {
  std::string source = {};  // file name, or the option that carried the text
  int line = 0;
  int column = 0;
  /// The whole line, or, of a long line, the part around the place.
  std::string line_text = {};
  int caret = 0;  // the character of line_text that the place is, from 0
};

/// The parts of a message to the user. got, want and why may be empty.
struct Problem {
  std::string what, got, want, why, next;
  Place place = {};
};

/// Thrown for a mistake in a file, an option or an expression. what() is the whole message with the
/// line and a caret under the place.
class InputError : public std::runtime_error {
 public:
  /// REQUIRES: what and next are not empty.
  explicit InputError(Problem problem);
  const Problem& problem() const { return problem_; }
  /// {"what", "got", "want", "why", "next", "source", "line", "column"}, for --json.
  nlohmann::json json() const;

 private:
  Problem problem_;
};

/// The place of byte `offset` in `text`.
Place place_in(std::string_view source, std::string_view text, std::size_t offset);
/// The line that an offset lies in.
struct Line {
  std::size_t begin = 0, end = 0;  // bytes; `end` is the line's newline, or the end of the text
  int number = 1;
  std::size_t characters_before = 0;  // characters of the line that precede the offset
};
/// As place_in(), for a caller that knows the line: only the part of the line that is shown is
/// read.
Place place_in_line(std::string_view source, std::string_view text, std::size_t offset,
                    const Line& line);

/// The number of characters of a UTF-8 text.
std::size_t character_count(std::string_view text);

/// The name among `names` that `name` most probably is a misspelling of, or an empty text if a
/// third of the letters or more would have to change.
std::string nearest_name(std::string_view name, std::span<const std::string> names);

/// "did you mean `x`?" if a name is near (nearest_name), otherwise `otherwise`.
std::string suggestion(std::string_view name, std::span<const std::string> names,
                       std::string otherwise);

/// "a, b, c": at most `limit` of the names, then how many more there are.
std::string listed(std::span<const std::string> names, std::size_t limit = 24);

}  // namespace graphproof::matrix

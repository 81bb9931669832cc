// One exception for everything a user wrote wrongly: what / got / want / why / next with the place
// in the text. The programs catch it in main, print what() and end with exit code 2.
#pragma once

#include <nlohmann/json.hpp>

#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace graphproof::matrix {

/// A place in a text. line and column count from 1, columns in characters; line 0 means that there
/// is no place.
struct Place {
  std::string source = {};  // file name, or the option that carried the text
  int line = 0;
  int column = 0;
  std::string line_text =
      {};         // the whole line, or a window of it with the caret's column moved along
  int caret = 0;  // 0-based character in line_text
};

struct Problem {
  std::string what, got, want, why, next;
  Place place = {};
};

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
/// The line in which an offset lies.
struct Line {
  std::size_t begin = 0, end = 0;  // bytes; the end is its newline, or the text's end
  int number = 1;
  std::size_t characters_before = 0;  // of the line, up to the offset
};
/// The same where the line is known, so that nothing but the part of it that is shown is read.
Place place_in_line(std::string_view source, std::string_view text, std::size_t offset,
                    const Line& line);

/// Of UTF-8 text.
std::size_t character_count(std::string_view text);

/// The name of `names` that `name` most probably meant, or an empty text. A third of the letters
/// may differ.
std::string nearest_name(std::string_view name, std::span<const std::string> names);

/// "did you mean `x`?" when a name is near, otherwise `otherwise`.
std::string suggestion(std::string_view name, std::span<const std::string> names,
                       std::string otherwise);

/// "a, b, c" of at most `limit` names, the rest counted.
std::string listed(std::span<const std::string> names, std::size_t limit = 24);

}  // namespace graphproof::matrix

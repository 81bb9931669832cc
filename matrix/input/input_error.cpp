#include "matrix/input/input_error.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace graphproof::matrix {
namespace {

constexpr std::size_t kLineWindow = 120;  // bytes of a long line that a message shows

bool starts_character(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) != 0x80; }

std::string message(const Problem& problem) {
  std::string text = problem.what;
  const Place& place = problem.place;
  if (!place.source.empty()) {
    text += "\n  at    " + place.source;
    if (place.line > 0)
      text += ":" + std::to_string(place.line) + ":" + std::to_string(place.column);
  }
  if (place.line > 0) {
    text += "\n        " + place.line_text + "\n        ";
    text.append(static_cast<std::size_t>(place.caret), ' ');
    text += "^";
  }
  const std::pair<const char*, const std::string*> rows[] = {{"got   ", &problem.got},
                                                             {"want  ", &problem.want},
                                                             {"why   ", &problem.why},
                                                             {"next  ", &problem.next}};
  for (const auto& [label, value] : rows) {
    if (!value->empty()) text += std::string("\n  ") + label + *value;
  }
  return text;
}

// How many edits turn one name into the other. An edit inserts, deletes or replaces a letter, or
// swaps two neighbours.
std::size_t distance(std::string_view left, std::string_view right) {
  std::vector<std::vector<std::size_t>> cost(left.size() + 1,
                                             std::vector<std::size_t>(right.size() + 1));
  for (std::size_t i = 0; i <= left.size(); ++i) cost[i][0] = i;
  for (std::size_t j = 0; j <= right.size(); ++j) cost[0][j] = j;
  for (std::size_t i = 1; i <= left.size(); ++i) {
    for (std::size_t j = 1; j <= right.size(); ++j) {
      const std::size_t exchange = cost[i - 1][j - 1] + (left[i - 1] == right[j - 1] ? 0 : 1);
      cost[i][j] = std::min({cost[i - 1][j] + 1, cost[i][j - 1] + 1, exchange});
      if (i > 1 && j > 1 && left[i - 1] == right[j - 2] && left[i - 2] == right[j - 1])
        cost[i][j] = std::min(cost[i][j], cost[i - 2][j - 2] + 1);
    }
  }
  return cost[left.size()][right.size()];
}

}  // namespace

InputError::InputError(Problem problem)
    : std::runtime_error(message(problem)), problem_(std::move(problem)) {
  assert(!problem_.what.empty() && !problem_.next.empty());
}

nlohmann::json InputError::json() const {
  return {{"what", problem_.what},       {"got", problem_.got},
          {"want", problem_.want},       {"why", problem_.why},
          {"next", problem_.next},       {"source", problem_.place.source},
          {"line", problem_.place.line}, {"column", problem_.place.column}};
}

std::size_t character_count(std::string_view text) {
  // This runs over every byte of every file that is read, so it makes no call for a byte.
  std::size_t count = 0;
  for (const char byte : text) count += (static_cast<unsigned char>(byte) & 0xC0) != 0x80;
  return count;
}

Place place_in(std::string_view source, std::string_view text, std::size_t offset) {
  offset = std::min(offset, text.size());
  const std::string_view before = text.substr(0, offset);
  const std::size_t newline = before.rfind('\n');
  Line line{.begin = newline == std::string_view::npos ? 0 : newline + 1,
            .end = std::min(text.find('\n', offset), text.size())};
  line.number = 1 + static_cast<int>(std::count(before.begin(), before.end(), '\n'));
  line.characters_before = character_count(text.substr(line.begin, offset - line.begin));
  return place_in_line(source, text, offset, line);
}

Place place_in_line(std::string_view source, std::string_view text, std::size_t offset,
                    const Line& line) {
  offset = std::min(offset, text.size());
  Place place{.source = std::string(source)};
  place.line = line.number;
  place.column = 1 + static_cast<int>(line.characters_before);

  // Of a long line, show the part around the caret, and cut it between characters.
  std::size_t begin = line.begin, end = line.end;
  if (end - begin > kLineWindow) {
    begin = offset - std::min(offset - line.begin, kLineWindow / 2);
    end = std::min(line.end, begin + kLineWindow);
    while (begin < offset && !starts_character(text[begin])) ++begin;
    while (end < line.end && !starts_character(text[end])) ++end;
  }
  place.caret = static_cast<int>(character_count(text.substr(begin, offset - begin)));
  for (const char byte : text.substr(begin, end - begin)) {
    // Control characters become blanks: a tab would misplace the caret, an escape sequence could
    // change the terminal.
    place.line_text += static_cast<unsigned char>(byte) < 0x20 || byte == 0x7F ? ' ' : byte;
  }
  return place;
}

std::string nearest_name(std::string_view name, std::span<const std::string> names) {
  // A longer name is no typing error, and the cost grows with the square of the length.
  constexpr std::size_t kLongestName = 64;
  std::string best;
  if (name.size() > kLongestName) return best;
  std::size_t best_distance = std::max<std::size_t>(1, name.size() / 3) + 1;
  for (const std::string& candidate : names) {
    if (candidate.size() > kLongestName) continue;
    const std::size_t edits = distance(name, candidate);
    if (edits < best_distance && edits < name.size()) {
      best = candidate;
      best_distance = edits;
    }
  }
  return best;
}

std::string suggestion(std::string_view name, std::span<const std::string> names,
                       std::string otherwise) {
  const std::string near = nearest_name(name, names);
  return near.empty() ? otherwise : "did you mean `" + near + "`?";
}

std::string listed(std::span<const std::string> names, std::size_t limit) {
  std::string text;
  for (std::size_t i = 0; i < names.size() && i < limit; ++i)
    text += (i == 0 ? "" : ", ") + names[i];
  if (names.size() > limit) text += " and " + std::to_string(names.size() - limit) + " more";
  return text;
}

}  // namespace graphproof::matrix

#include "matrix/input/version.h"

#include <charconv>

namespace graphproof::matrix {

std::strong_ordering Version::operator<=>(const Version& other) const {
  if (const auto order = numbers <=> other.numbers; order != 0) return order;
  if (pre_release.empty() != other.pre_release.empty())
    return pre_release.empty() ? std::strong_ordering::greater : std::strong_ordering::less;
  const int order = pre_release.compare(other.pre_release);
  return order <=> 0;
}

std::optional<Version> parse_version(std::string_view text) {
  Version version;
  version.text = std::string(text);
  std::string_view rest = text.substr(0, text.find('+'));
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  while (true) {
    std::int64_t number = 0;
    if (rest.empty() || !is_digit(rest.front())) return std::nullopt;
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), number);
    if (error != std::errc()) return std::nullopt;
    version.numbers.push_back(number);
    rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
    if (rest.size() < 2 || rest.front() != '.' || !is_digit(rest[1])) break;
    rest.remove_prefix(1);
  }
  if (!rest.empty() && rest.front() == '.') {  // 2.6.0.dev0
    rest.remove_prefix(1);
    if (rest.empty()) return std::nullopt;
  }
  for (const char c : rest) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    if (!letter && !is_digit(c)) return std::nullopt;
  }
  if (!rest.empty() && is_digit(rest.front())) return std::nullopt;
  version.pre_release = std::string(rest);
  while (!version.numbers.empty() && version.numbers.back() == 0) version.numbers.pop_back();
  return version;
}

}  // namespace graphproof::matrix

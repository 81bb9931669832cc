#include "launcher/cli/bundle/redaction.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>

#include "launcher/backend/local_command.h"

namespace graphproof::cli {
namespace {

constexpr std::array<std::string_view, 11> kEverywhere = {
    "usr", "opt", "lib", "lib64", "dev", "proc", "sys", "etc", "bin", "sbin", "run"};
constexpr std::size_t kGpuIdDigits = 36;  // of a UUID with its dashes

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }
bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }
bool in_path(char c) {
  return is_word(c) || c == '/' || c == '.' || c == '-' || c == '+' || c == '@' || c == '%';
}
bool in_mail(char c) { return is_word(c) || c == '.' || c == '-' || c == '+'; }

/// The end of the longest piece from `at` whose characters are all `accepted`.
template <typename Accepted>
std::size_t end_of(std::string_view text, std::size_t at, Accepted accepted) {
  while (at < text.size() && accepted(text[at])) ++at;
  return at;
}

/// The end of an absolute path at `at` that says whose machine this is; `at` if there is none.
std::size_t private_path(std::string_view text, std::size_t at) {
  if (text[at] != '/' || (at > 0 && (in_path(text[at - 1]) || text[at - 1] == ')'))) return at;
  std::size_t end = end_of(text, at, in_path);
  while (end > at && (text[end - 1] == '.' || text[end - 1] == '/')) --end;
  const std::string_view path = text.substr(at, end - at);
  const std::size_t second = path.find('/', 1);
  if (path.size() < 2 || second == path.npos || path[1] == '/') return at;
  return std::ranges::count(kEverywhere, path.substr(1, second - 1)) > 0 ? at : end;
}

std::size_t ipv4(std::string_view text, std::size_t at) {
  if (!is_digit(text[at]) || (at > 0 && (is_word(text[at - 1]) || text[at - 1] == '.'))) return at;
  std::size_t end = at;
  for (int part = 0; part < 4; ++part) {
    if (part > 0 && (end >= text.size() || text[end++] != '.')) return at;
    const std::size_t next = end_of(text, end, is_digit);
    if (next == end || next - end > 3 || std::stoi(std::string(text.substr(end, next - end))) > 255)
      return at;
    end = next;
  }
  if (end < text.size() && (is_word(text[end]) || text[end] == '.')) {
    // A full stop may end the sentence.
    if (text[end] != '.' || (end + 1 < text.size() && is_word(text[end + 1]))) return at;
  }
  const std::string_view address = text.substr(at, end - at);
  return address.starts_with("127.") || address == "0.0.0.0" ? at : end;
}

std::size_t mail(std::string_view text, std::size_t at) {
  if (!in_mail(text[at]) || (at > 0 && in_mail(text[at - 1]))) return at;
  const std::size_t middle = end_of(text, at, in_mail);
  if (middle == text.size() || text[middle] != '@') return at;
  std::size_t end = end_of(text, middle + 1, in_mail);
  while (end > middle && text[end - 1] == '.') --end;
  return text.substr(middle, end - middle).find('.') == std::string_view::npos ? at : end;
}

std::size_t gpu_id(std::string_view text, std::size_t at) {
  constexpr std::string_view kBegin = "GPU-";
  if (!text.substr(at).starts_with(kBegin)) return at;
  const std::size_t end = end_of(text, at + kBegin.size(), [](char c) {
    return std::isxdigit(static_cast<unsigned char>(c)) != 0 || c == '-';
  });
  return end - at == kBegin.size() + kGpuIdDigits ? end : at;
}

/// The value of a secret after its `=`. [begin, end) is empty if there is none at `at`.
std::size_t secret_value(std::string_view text, std::size_t at) {
  if (text[at] != '=' || at == 0) return at;
  std::size_t begin = at;
  while (begin > 0 && is_word(text[begin - 1])) --begin;
  const std::string name(text.substr(begin, at - begin));
  if (name.empty() || launcher::redacted(name, "") != launcher::redacted("KEY", "")) return at;
  return end_of(text, at + 1, [](char c) {
    return std::isspace(static_cast<unsigned char>(c)) == 0 && c != '"' && c != '\'';
  });
}

}  // namespace

void Redaction::hide(const std::string& word, const std::string& replacement) {
  if (word.size() > 1) words_.emplace_back(word, replacement);
}

std::string Redaction::operator()(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  const auto replace = [&](const std::string& with) {
    out += with;
    ++counts_[with];
  };
  for (std::size_t at = 0; at < text.size();) {
    if (const std::size_t end = private_path(text, at); end != at) {
      const std::string_view path = text.substr(at, end - at);
      replace("PATH");
      // The last part may have a name in it.
      out += (*this)(path.substr(path.rfind('/')));
      at = end;
    } else if (const std::size_t address = ipv4(text, at); address != at) {
      replace("ADDRESS");
      at = address;
    } else if (const std::size_t person = mail(text, at); person != at) {
      replace("MAIL");
      at = person;
    } else if (const std::size_t id = gpu_id(text, at); id != at) {
      replace("GPU-ID");
      at = id;
    } else if (const std::size_t value = secret_value(text, at); value > at + 1) {
      out += '=';
      replace("(redacted)");
      at = value;
    } else {
      const auto hidden = std::ranges::find_if(words_, [&](const auto& one) {
        const std::string& word = one.first;
        const std::size_t end = at + word.size();
        return text.substr(at, word.size()) == word && (at == 0 || !is_word(text[at - 1])) &&
               (end == text.size() || !is_word(text[end]));
      });
      if (hidden == words_.end()) {
        out += text[at++];
        continue;
      }
      replace(hidden->second);
      at += hidden->first.size();
    }
  }
  return out;
}

}  // namespace graphproof::cli

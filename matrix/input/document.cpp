#include "matrix/input/document.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdlib>

namespace graphproof::matrix {
namespace {

constexpr int kMaximumDepth = 64;  // far above the depth of any file that we read
// Larger than any plan, and a bound on the memory that a wrong file takes.
constexpr std::size_t kMaximumBytes = std::size_t{64} << 20;

// The length of the UTF-8 sequence at `text[at]`, or 0 if it is invalid: overlong forms, surrogates
// and values over U+10FFFF are.
std::size_t utf8_length(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) {
    return at + i < text.size() ? static_cast<unsigned char>(text[at + i]) : 0u;
  };
  const auto tail = [&](std::size_t i) { return (byte(i) & 0xC0) == 0x80; };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  if (first >= 0xC2 && first <= 0xDF) return tail(1) ? 2 : 0;
  if (first >= 0xE0 && first <= 0xEF) {
    if (!tail(1) || !tail(2)) return 0;
    if (first == 0xE0 && byte(1) < 0xA0) return 0;
    if (first == 0xED && byte(1) > 0x9F) return 0;
    return 3;
  }
  if (first >= 0xF0 && first <= 0xF4) {
    if (!tail(1) || !tail(2) || !tail(3)) return 0;
    if (first == 0xF0 && byte(1) < 0x90) return 0;
    if (first == 0xF4 && byte(1) > 0x8F) return 0;
    return 4;
  }
  return 0;
}

void append_utf8(std::string& text, unsigned code) {
  if (code < 0x80) {
    text += static_cast<char>(code);
  } else if (code < 0x800) {
    text += static_cast<char>(0xC0 | (code >> 6));
    text += static_cast<char>(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    text += static_cast<char>(0xE0 | (code >> 12));
    text += static_cast<char>(0x80 | ((code >> 6) & 0x3F));
    text += static_cast<char>(0x80 | (code & 0x3F));
  } else {
    text += static_cast<char>(0xF0 | (code >> 18));
    text += static_cast<char>(0x80 | ((code >> 12) & 0x3F));
    text += static_cast<char>(0x80 | ((code >> 6) & 0x3F));
    text += static_cast<char>(0x80 | (code & 0x3F));
  }
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

class Parser {
 public:
  Parser(std::string_view text, Document& document) : text_(text), document_(document) {}

  void run() {
    if (text_.size() > kMaximumBytes)
      fail(0, "the file is too large", "at most 64 MiB", "name a matrix file");
    for (std::size_t i = 0; i < text_.size();) {
      const std::size_t length = utf8_length(text_, i);
      if (length == 0) fail(i, "invalid UTF-8", "text in UTF-8", "save the file as UTF-8");
      i += length;
    }
    document_.value = value("", 0);
    space();
    if (at_ < text_.size())
      fail(at_, "text after the end of the JSON value", "one value", "remove the rest");
  }

 private:
  [[noreturn]] void fail(std::size_t offset, std::string what, std::string want,
                         std::string next) const {
    std::string got;
    if (offset >= text_.size()) {
      got = "the end of the text";
    } else {
      const std::size_t length = utf8_length(text_, offset);
      got = length == 0 ? "byte " + std::to_string(static_cast<unsigned char>(text_[offset]))
                        : "`" + std::string(text_.substr(offset, length)) + "`";
    }
    throw InputError({.what = std::move(what),
                      .got = std::move(got),
                      .want = std::move(want),
                      .why = "",
                      .next = std::move(next),
                      .place = place_in(document_.source, text_, offset)});
  }

  void space() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == ' ' || c == '\t' || c == '\n' || c == '\r') {
        ++at_;
      } else if (text_.substr(at_, 2) == "//") {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else if (text_.substr(at_, 2) == "/*") {
        const std::size_t end = text_.find("*/", at_ + 2);
        if (end == std::string_view::npos)
          fail(at_, "an unterminated comment", "*/", "close the comment");
        at_ = end + 2;
      } else {
        return;
      }
    }
  }

  Json value(const std::string& pointer, int depth) {
    space();
    document_.offsets[pointer] = at_;
    if (depth > kMaximumDepth)
      fail(at_, "nested too deeply", "at most " + std::to_string(kMaximumDepth) + " levels",
           "flatten the file");
    if (at_ >= text_.size()) fail(at_, "malformed JSON", "a value", "complete the file");
    const char c = text_[at_];
    if (c == '{') return object(pointer, depth);
    if (c == '[') return array(pointer, depth);
    if (c == '"') return string();
    if (c == '-' || (c >= '0' && c <= '9')) return number();
    for (const auto& [word, json] :
         {std::pair<std::string_view, Json>{"true", true}, {"false", false}, {"null", nullptr}}) {
      if (text_.substr(at_, word.size()) == word) {
        at_ += word.size();
        return json;
      }
    }
    fail(at_, "malformed JSON", "a value: object, array, \"text\", number, true, false or null",
         "put text into double quotes");
  }

  Json object(const std::string& pointer, int depth) {
    Json result = Json::object();
    ++at_;
    space();
    if (peek('}')) return result;
    while (true) {
      space();
      const std::size_t key_offset = at_;
      if (at_ >= text_.size() || text_[at_] != '"')
        fail(at_, "malformed JSON", "a key in double quotes",
             "quote the key, or remove the comma before");
      const std::string key = string();
      const std::string member = pointer + "/" + pointer_token(key);
      if (document_.keys.count(member) != 0) {
        const Place first = place_in(document_.source, text_, document_.keys.at(member));
        throw InputError({.what = "the key `" + key + "` appears twice",
                          .got = "a second `" + key + "`",
                          .want = "each key once",
                          .why = "the first one is in line " + std::to_string(first.line),
                          .next = "remove one of them",
                          .place = place_in(document_.source, text_, key_offset)});
      }
      document_.keys[member] = key_offset;
      space();
      if (at_ >= text_.size() || text_[at_] != ':')
        fail(at_, "malformed JSON", "`:` after the key", "add the colon");
      ++at_;
      // Adding by name would compare with all earlier names; duplicates are known already.
      result.get_ref<Json::object_t&>().emplace_back(key, value(member, depth + 1));
      space();
      if (peek('}')) return result;
      if (at_ >= text_.size() || text_[at_] != ',')
        fail(at_, "malformed JSON", "`,` or `}`", "add the comma or close the object");
      ++at_;
    }
  }

  Json array(const std::string& pointer, int depth) {
    Json result = Json::array();
    ++at_;
    space();
    if (peek(']')) return result;
    while (true) {
      result.push_back(value(pointer + "/" + std::to_string(result.size()), depth + 1));
      space();
      if (peek(']')) return result;
      if (at_ >= text_.size() || text_[at_] != ',')
        fail(at_, "malformed JSON", "`,` or `]`", "add the comma or close the array");
      ++at_;
    }
  }

  bool peek(char c) {
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  unsigned four_hex_digits() {
    unsigned code = 0;
    for (int i = 0; i < 4; ++i, ++at_) {
      const int digit = at_ < text_.size() ? hex_digit(text_[at_]) : -1;
      if (digit < 0)
        fail(at_, "malformed JSON", "four hexadecimal digits after \\u", "correct the escape");
      code = code * 16 + static_cast<unsigned>(digit);
    }
    return code;
  }

  std::string string() {
    const std::size_t begin = at_++;
    std::string result;
    while (true) {
      if (at_ >= text_.size() || text_[at_] == '\n')
        fail(begin, "malformed JSON: an unterminated text", "a closing \"", "close the text");
      const char c = text_[at_];
      if (c == '"') {
        ++at_;
        return result;
      }
      if (static_cast<unsigned char>(c) < 0x20)
        fail(at_, "malformed JSON: a control character in a text", "an escape such as \\t",
             "escape it");
      if (c != '\\') {
        result += c;
        ++at_;
        continue;
      }
      const std::size_t escape = at_++;
      const char kind = at_ < text_.size() ? text_[at_++] : '\0';
      switch (kind) {
        case '"':
          result += '"';
          break;
        case '\\':
          result += '\\';
          break;
        case '/':
          result += '/';
          break;
        case 'b':
          result += '\b';
          break;
        case 'f':
          result += '\f';
          break;
        case 'n':
          result += '\n';
          break;
        case 'r':
          result += '\r';
          break;
        case 't':
          result += '\t';
          break;
        case 'u': {
          unsigned code = four_hex_digits();
          if (code >= 0xD800 && code <= 0xDBFF && text_.substr(at_, 2) == "\\u") {
            at_ += 2;
            const unsigned low = four_hex_digits();
            if (low < 0xDC00 || low > 0xDFFF)
              fail(escape, "malformed JSON: an unpaired surrogate", "a pair", "correct the escape");
            code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
          } else if (code >= 0xD800 && code <= 0xDFFF) {
            fail(escape, "malformed JSON: an unpaired surrogate", "a pair", "correct the escape");
          }
          append_utf8(result, code);
          break;
        }
        default:
          fail(escape, "malformed JSON: an unknown escape",
               "\\\" \\\\ \\/ \\b \\f \\n \\r \\t or \\uXXXX", "correct the escape");
      }
    }
  }

  Json number() {
    const std::size_t begin = at_;
    const auto digits = [&] {
      const std::size_t first = at_;
      while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9') ++at_;
      if (at_ == first)
        fail(at_, "malformed JSON: a number without digits", "a digit", "complete the number");
      return at_ - first;
    };
    if (text_[at_] == '-') ++at_;
    const std::size_t integer_begin = at_;
    if (digits() > 1 && text_[integer_begin] == '0')
      fail(integer_begin, "malformed JSON: a number with a leading zero", "a number without it",
           "remove the zero");
    bool integer = true;
    if (at_ < text_.size() && text_[at_] == '.') {
      integer = false;
      ++at_;
      digits();
    }
    if (at_ < text_.size() && (text_[at_] == 'e' || text_[at_] == 'E')) {
      integer = false;
      ++at_;
      if (at_ < text_.size() && (text_[at_] == '+' || text_[at_] == '-')) ++at_;
      digits();
    }
    const std::string literal(text_.substr(begin, at_ - begin));
    if (integer) {
      std::int64_t result = 0;
      const auto [end, error] =
          std::from_chars(literal.data(), literal.data() + literal.size(), result);
      if (error != std::errc())
        fail(begin, "the number " + literal + " is out of range", "a 64-bit integer",
             "use a smaller number");
      return result;
    }
    const double result = std::strtod(literal.c_str(), nullptr);
    if (!std::isfinite(result))
      fail(begin, "the number " + literal + " is out of range", "a finite number",
           "use a smaller number");
    return result;
  }

  std::string_view text_;
  Document& document_;
  std::size_t at_ = 0;
};

}  // namespace

std::string pointer_token(std::string_view key) {
  std::string text;
  for (const char c : key) {
    if (c == '~')
      text += "~0";
    else if (c == '/')
      text += "~1";
    else
      text += c;
  }
  return text;
}

Origin Origin::option(std::string source, std::string text) {
  return {std::move(source), std::make_shared<const std::string>(std::move(text)), 0, false};
}

Place Origin::at(std::size_t offset) const {
  if (!document) return {.source = source};
  if (!in_json_string) return place_in(source, *document, begin + offset);
  // Walks through the raw text of the JSON string, because an escape is longer than its character.
  std::size_t raw = begin + 1;
  for (std::size_t decoded = 0;
       decoded < offset && raw < document->size() && (*document)[raw] != '"';) {
    if ((*document)[raw] != '\\') {
      ++raw;
      ++decoded;
    } else if ((*document)[raw + 1] != 'u') {
      raw += 2;
      ++decoded;
    } else {
      unsigned code = 0;
      for (int i = 2; i < 6; ++i)
        code = code * 16 + static_cast<unsigned>(std::max(
                               0, hex_digit((*document)[raw + static_cast<std::size_t>(i)])));
      const bool pair = code >= 0xD800 && code <= 0xDBFF;
      raw += pair ? 12 : 6;
      decoded += pair ? 4 : code < 0x80 ? 1 : code < 0x800 ? 2 : 3;
    }
  }
  return place_in(source, *document, raw);
}

Place Document::at(std::size_t offset) const {
  offset = std::min(offset, text->size());
  const auto after = std::upper_bound(line_begins.begin(), line_begins.end(), offset);
  const std::size_t begin = *(after - 1),
                    end = after == line_begins.end() ? text->size() : *after - 1;
  const auto characters_before = [&](std::size_t at) {
    const std::size_t block = at / kBlockBytes;
    // A document that came from YAML has no counts.
    if (block >= character_counts.size())
      return character_count(std::string_view(*text).substr(begin, at - begin));
    return character_counts[block] + character_count(std::string_view(*text).substr(
                                         block * kBlockBytes, at - block * kBlockBytes));
  };
  return place_in_line(source, *text, offset,
                       {.begin = begin,
                        .end = end,
                        .number = static_cast<int>(after - line_begins.begin()),
                        .characters_before = characters_before(offset) - characters_before(begin)});
}

Document parse_document(std::string_view text, std::string source) {
  Document document;
  document.source = std::move(source);
  document.text = std::make_shared<const std::string>(text);
  document.line_begins.push_back(0);
  for (std::size_t i = 0; i < text.size(); ++i)
    if (text[i] == '\n') document.line_begins.push_back(i + 1);
  document.character_counts.push_back(0);
  for (std::size_t i = Document::kBlockBytes; i <= text.size(); i += Document::kBlockBytes)
    document.character_counts.push_back(
        document.character_counts.back() +
        character_count(text.substr(i - Document::kBlockBytes, Document::kBlockBytes)));
  Parser(*document.text, document).run();
  return document;
}

}  // namespace graphproof::matrix

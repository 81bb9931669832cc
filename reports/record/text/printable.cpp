#include "reports/record/text/printable.h"

#include <cstdint>
#include <cstdio>

namespace graphproof::record {
namespace {

struct Decoded {
  std::uint32_t code_point = 0;
  std::size_t bytes = 0;  // 0 if no valid UTF-8 sequence starts here
};

Decoded decode(std::string_view text) {
  const auto byte = [&text](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return {first, 1};
  const std::size_t size = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() < size) return {};
  std::uint32_t code_point = first & (0xff >> (size + 1));
  for (std::size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return {};
    code_point = code_point << 6 | (byte(i) & 0x3f);
  }
  constexpr std::uint32_t kShortest[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = code_point >= 0xd800 && code_point <= 0xdfff;
  if (code_point < kShortest[size] || code_point > 0x10ffff || surrogate) return {};
  return {code_point, size};
}

}  // namespace

std::string printable(std::string_view text) {
  constexpr char kHex[] = "0123456789abcdef";
  std::string result;
  while (!text.empty()) {
    const Decoded decoded = decode(text);
    const bool control =
        decoded.code_point < 0x20 || (decoded.code_point >= 0x7f && decoded.code_point < 0xa0);
    const bool forbidden = decoded.code_point == 0xfffe || decoded.code_point == 0xffff;
    const std::size_t bytes = decoded.bytes == 0 ? 1 : decoded.bytes;
    if (decoded.bytes == 0 || control || forbidden) {
      for (const char c : text.substr(0, bytes)) {
        const auto value = static_cast<unsigned char>(c);
        result += {'\\', 'x', kHex[value >> 4], kHex[value & 15]};
      }
    } else {
      result += text.substr(0, bytes);
    }
    text.remove_prefix(bytes);
  }
  return result;
}

std::string fixed(double value, int digits) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}

}  // namespace graphproof::record

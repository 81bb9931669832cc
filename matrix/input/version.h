// Dotted versions of the software stack, ordered as people read them: 2.9 < 2.11 = 2.11.0, 2.11.0a0
// < 2.11.0.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace graphproof::matrix {

/// A version that can be compared.
struct Version {
  std::vector<std::int64_t> numbers;  // without trailing zeros
  std::string pre_release;  // "a0", "rc1", "dev20250101"; empty for a release, which comes after
  std::string text;         // as it was written

  bool operator==(const Version& other) const { return (*this <=> other) == 0; }
  std::strong_ordering operator<=>(const Version& other) const;
};

/// Reads `2.11`, `2.11.0+cu130` (the local part does not count) or `2.12.0a0`; nothing for any
/// other text.
std::optional<Version> parse_version(std::string_view text);

}  // namespace graphproof::matrix

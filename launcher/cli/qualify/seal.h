// SHA256SUMS: the digests of all files of a folder, in the format of the program sha256sum, so that
// whoever gets the folder can verify it without graphproof.
#pragma once

#include <filesystem>
#include <string>

namespace graphproof::cli {

inline constexpr const char* kSums = "SHA256SUMS";

struct Seal {
  int files = 0;
  std::string sha256;  // of SHA256SUMS
};

/// Writes SHA256SUMS of every regular file below `folder`, sorted by path. Links, other kinds of
/// files, and the sheets (SHA256SUMS* and qualification.*), which show the digest, are left out.
Seal seal(const std::filesystem::path& folder);

}  // namespace graphproof::cli

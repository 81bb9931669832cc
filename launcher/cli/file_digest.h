// The SHA-256 of files, also of large ones such as the libraries of PyTorch.
#pragma once

#include <filesystem>
#include <string>

namespace graphproof::cli {

/// 64 hexadecimal digits. Reads the file in pieces by mapping it. Throws record::ReadError if the
/// file can't be opened or mapped.
std::string sha256_of_file(const std::filesystem::path& file);

}  // namespace graphproof::cli

// Files that users name: whatever they turn out to be, reading them ends.
#pragma once

#include <filesystem>
#include <string>

namespace graphproof::cli {

/// The bytes of `file`, a regular file or a pipe. Throws InputError for anything else, for more
/// than 64 MiB, and where a pipe's writer says nothing for half a minute.
std::string read_input(const std::filesystem::path& file);

}  // namespace graphproof::cli

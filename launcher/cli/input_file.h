// Reads files that users name. Reading ends whatever the path turns out to be.
#pragma once

#include <filesystem>
#include <string>

namespace graphproof::cli {

/// The bytes of `file`, a regular file or a pipe. Throws InputError for anything else, for more
/// than 64 MiB, and if nothing arrives in a pipe for half a minute.
std::string read_input(const std::filesystem::path& file);

}  // namespace graphproof::cli

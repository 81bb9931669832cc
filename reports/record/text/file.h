// Whole files that cross a boundary: read with a message that names the place of a mistake, written
// so that a reader sees the old text or the new one and never half of it.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "reports/record/text/fields.h"

namespace graphproof::record {

/// The bytes of `file`. ReadError names it.
std::string read_text(const std::filesystem::path& file);

/// One JSON value. ReadError with line and column of a mistake.
nlohmann::json read_json(const std::filesystem::path& file);
nlohmann::json parse_json(std::string_view text, const std::string& where);

/// Complete lines of a file that is appended to. A last line without a newline is torn: its writer
/// died or is still writing. It is not returned, and `torn_bytes` says how long it was.
struct Lines {
  std::vector<std::string> lines;
  std::size_t whole_bytes = 0;  // up to and including the last newline
  std::size_t torn_bytes = 0;
};
Lines split_lines(std::string_view text);
Lines read_lines(const std::filesystem::path& file);

/// What a file is to outlive once it was written: its writer's death, or the host's too. That takes
/// the disk's time, so it is for what can't be made again. Without it a host that loses power may
/// leave the new name with no text.
enum class Survives { kill, power_failure };

/// Writes beside `file` and renames over it. WriteError names `file` and the cause (no space left,
/// ...); the old content then still stands and nothing is left beside it.
void write_atomically(const std::filesystem::path& file, std::string_view text,
                      Survives survives = Survives::power_failure);
void write_json(const std::filesystem::path& file, const Json& value,
                Survives survives = Survives::power_failure);

}  // namespace graphproof::record

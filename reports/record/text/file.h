// Reads and writes whole files that programs exchange. A mistake is reported with its place. A file
// is written so that a reader sees either the old text or the new one, never a part of it.
#pragma once

#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "reports/record/text/fields.h"

namespace graphproof::record {

/// The bytes of `file`. Throws ReadError.
std::string read_text(const std::filesystem::path& file);

/// Reads a file with one JSON value. Throws ReadError with line and column of a mistake.
nlohmann::json read_json(const std::filesystem::path& file);
nlohmann::json parse_json(std::string_view text, const std::string& where);

/// The complete lines of a file to which lines are appended. A last line without a newline is torn:
/// its writer died or is still writing. It is not among the lines; `torn_bytes` is its length.
struct Lines {
  std::vector<std::string> lines;
  std::size_t whole_bytes = 0;  // up to the last newline, which is included
  std::size_t torn_bytes = 0;
};
Lines split_lines(std::string_view text);
/// The same for a large text: calls `with` for each complete line, without its newline, and returns
/// the number of bytes after the last one.
std::size_t for_each_line(std::string_view text, const std::function<void(std::string_view)>& with);
Lines read_lines(const std::filesystem::path& file);

/// What a written file must survive: the death of its writer, or also a power failure of the host.
/// The latter waits for the disk, so it is for files that can't be made again. Without it, a power
/// failure may leave an empty file.
enum class Survives { kill, power_failure };

/// Writes a temporary file in the same folder, and commit() renames it to `file`. Each function
/// throws WriteError with the cause, such as no space left. Small pieces are collected before they
/// are written. Without commit() the old content is unchanged and the temporary file is removed.
/// For one thread.
class AtomicFile {
 public:
  explicit AtomicFile(std::filesystem::path file);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void append(std::string_view text);
  /// At most once, at the end.
  void commit(Survives survives = Survives::power_failure);

 private:
  [[noreturn]] void give_up();
  void flush();
  void write(std::string_view text);

  const std::filesystem::path file_, temporary_;
  std::string pending_;  // not yet written
  int descriptor_ = -1;  // -1 after commit() and after an error
};

/// The whole of an AtomicFile at once.
void write_atomically(const std::filesystem::path& file, std::string_view text,
                      Survives survives = Survives::power_failure);
void write_json(const std::filesystem::path& file, const Json& value,
                Survives survives = Survives::power_failure);

}  // namespace graphproof::record

// The files through which a launcher and an agent communicate, on a file system that both see; no
// process listens on a port. Each file has one writer, which appends whole lines, and one reader,
// which asks for new ones.
//
// What a shared file system must guarantee: a line that one side has appended before it closed the
// file is seen by a process that opens the file afterwards (NFS's close-to-open consistency), and a
// rename replaces a file at once.
#pragma once

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

namespace graphproof::cluster {

/// Appends a whole line (with its newline) and closes the file, so that other hosts see it. Throws
/// record::WriteError.
void append_line(const std::filesystem::path& file, const std::string& line);

/// Reads the whole lines that were appended since the last call; an absent file has none.
class LineReader {
 public:
  explicit LineReader(std::filesystem::path file) : file_(std::move(file)) {}
  std::vector<std::string> next();

 private:
  std::filesystem::path file_;
  std::size_t read_bytes_ = 0;
  std::string partial_;
};

/// How often to look into `folder`: every 10 ms on a disk of this host, every 200 ms where a look
/// is a question to a server.
std::chrono::milliseconds look_interval(const std::filesystem::path& folder);

inline std::filesystem::path orders_file(const std::filesystem::path& channel) {
  return channel / "orders.jsonl";
}
inline std::filesystem::path reports_file(const std::filesystem::path& channel) {
  return channel / "reports.jsonl";
}
inline std::filesystem::path live_file(const std::filesystem::path& channel) {
  return channel / "live.json";
}
/// The mark in a channel, or in the folder of all channels, that the launcher has given them up,
/// and that nothing more may be started.
inline std::filesystem::path revoked_file(const std::filesystem::path& folder) {
  return folder / "revoked";
}
inline std::filesystem::path channel_folder(const std::filesystem::path& channels, int agent) {
  return channels / ("node-" + std::to_string(agent));
}

}  // namespace graphproof::cluster

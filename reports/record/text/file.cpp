#include "reports/record/text/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace graphproof::record {
namespace {

/// Pieces shorter than this are collected: a write costs far more than a copy.
constexpr std::size_t kPiece_bytes = 1 << 16;

/// A file descriptor that closes itself.
struct Descriptor {
  int value;
  ~Descriptor() {
    if (value >= 0) ::close(value);
  }
};

[[noreturn]] void cannot_write(const std::filesystem::path& file, int error) {
  const bool full = error == ENOSPC || error == EDQUOT;
  throw WriteError({.what = "cannot write " + file.string(),
                    .got = std::strerror(error),
                    .want = "the file written whole",
                    .why = "the old content, if any, still stands",
                    .next = full ? "free space on its file system, then run the command again"
                                 : "make its folder writable, then run the command again"});
}

/// Line and column of byte `offset`, both from 1.
std::string position(std::string_view text, std::size_t offset) {
  std::size_t line = 1, column = 1;
  for (std::size_t i = 0; i < std::min(offset, text.size()); ++i) {
    if (text[i] == '\n') {
      ++line;
      column = 1;
    } else {
      ++column;
    }
  }
  return "line " + std::to_string(line) + ", column " + std::to_string(column);
}

}  // namespace

std::string read_text(const std::filesystem::path& file) {
  const Descriptor descriptor{::open(file.c_str(), O_RDONLY | O_CLOEXEC)};
  const auto fail = [&file] {
    throw ReadError({.what = "cannot read " + file.string(),
                     .got = std::strerror(errno),
                     .want = "a readable file",
                     .why = "",
                     .next = "check the path; a run folder is complete only if run.json is in it"});
  };
  if (descriptor.value < 0) fail();
  std::string text;
  char buffer[1 << 16];
  for (;;) {
    const ssize_t got = ::read(descriptor.value, buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail();
    if (got == 0) return text;
    text.append(buffer, static_cast<std::size_t>(got));
  }
}

nlohmann::json parse_json(std::string_view text, const std::string& where) {
  try {
    return nlohmann::json::parse(text);
  } catch (const nlohmann::json::parse_error& error) {
    // The library counts the byte of the mistake from 1.
    const std::size_t offset = error.byte == 0 ? 0 : error.byte - 1;
    throw ReadError({.what = where + " is not JSON, " + position(text, offset),
                     .got = offset < text.size() ? "`" + std::string(text.substr(offset, 20)) + "`"
                                                 : "the end of the text",
                     .want = "one JSON value",
                     .why = error.what(),
                     .next = "correct or remove the file"});
  }
}

nlohmann::json read_json(const std::filesystem::path& file) {
  return parse_json(read_text(file), file.string());
}

std::size_t for_each_line(std::string_view text,
                          const std::function<void(std::string_view)>& with) {
  for (std::size_t end = text.find('\n'); end != std::string_view::npos; end = text.find('\n')) {
    with(text.substr(0, end));
    text.remove_prefix(end + 1);
  }
  return text.size();
}

Lines split_lines(std::string_view text) {
  Lines result;
  result.torn_bytes =
      for_each_line(text, [&](std::string_view line) { result.lines.emplace_back(line); });
  result.whole_bytes = text.size() - result.torn_bytes;
  return result;
}

Lines read_lines(const std::filesystem::path& file) { return split_lines(read_text(file)); }

AtomicFile::AtomicFile(std::filesystem::path file)
    : file_(std::move(file)),
      temporary_(file_.string() + ".writing-" + std::to_string(::getpid())) {
  descriptor_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (descriptor_ < 0) cannot_write(file_, errno);
}

AtomicFile::~AtomicFile() {
  if (descriptor_ < 0) return;
  ::close(descriptor_);
  ::unlink(temporary_.c_str());
}

void AtomicFile::give_up() {
  const int error = errno;
  ::close(std::exchange(descriptor_, -1));
  ::unlink(temporary_.c_str());
  cannot_write(file_, error);
}

void AtomicFile::append(std::string_view text) {
  // A large text is written from where it is.
  if (text.size() < kPiece_bytes) {
    pending_ += text;
    if (pending_.size() >= kPiece_bytes) flush();
    return;
  }
  flush();
  write(text);
}

void AtomicFile::flush() {
  write(pending_);
  pending_.clear();
}

void AtomicFile::write(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(descriptor_, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) give_up();
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

void AtomicFile::commit(Survives survives) {
  flush();
  // The bytes must be on the disk before the rename is, which could otherwise be written first.
  if (survives == Survives::power_failure && ::fsync(descriptor_) != 0) give_up();
  if (::rename(temporary_.c_str(), file_.c_str()) != 0) give_up();
  ::close(std::exchange(descriptor_, -1));
}

void write_atomically(const std::filesystem::path& file, std::string_view text, Survives survives) {
  AtomicFile written(file);
  written.append(text);
  written.commit(survives);
}

void write_json(const std::filesystem::path& file, const Json& value, Survives survives) {
  write_atomically(file, value.dump(2, ' ', false, Json::error_handler_t::replace) + "\n",
                   survives);
}

}  // namespace graphproof::record

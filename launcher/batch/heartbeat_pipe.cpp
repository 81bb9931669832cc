#include "launcher/batch/heartbeat_pipe.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <system_error>
#include <utility>

namespace graphproof::launcher {
namespace {

[[noreturn]] void fail(const std::string& what) {
  throw std::system_error(errno, std::generic_category(), what);
}

}  // namespace

HeartbeatPipe::HeartbeatPipe(std::filesystem::path path) : path_(std::move(path)) {
  if (mkfifo(path_.c_str(), 0600) != 0)
    fail("can't make the heartbeat FIFO '" + path_.string() + "'");
  descriptor_ = open(path_.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC);
  if (descriptor_ < 0) fail("can't open the heartbeat FIFO '" + path_.string() + "'");
}

HeartbeatPipe::~HeartbeatPipe() {
  if (descriptor_ >= 0) close(descriptor_);
  unlink(path_.c_str());
}

std::vector<std::string> HeartbeatPipe::read_lines() {
  // A pipe takes 64 KiB. The bound keeps a rank that writes without end from holding up the
  // launcher.
  static constexpr int kReads = 16;
  std::array<char, 1 << 16> buffer;
  std::vector<std::string> lines;
  for (int reads = 0; reads < kReads; ++reads) {
    const ssize_t got = read(descriptor_, buffer.data(), buffer.size());
    if (got <= 0) break;
    partial_.append(buffer.data(), got);
    for (std::size_t end; (end = partial_.find('\n')) != std::string::npos;
         partial_.erase(0, end + 1))
      lines.push_back(partial_.substr(0, end));
    // A heartbeat is shorter than PIPE_BUF. More bytes without an end of line are garbage, and are
    // handed out as a line.
    if (partial_.size() > PIPE_BUF) lines.push_back(std::exchange(partial_, {}));
  }
  return lines;
}

}  // namespace graphproof::launcher

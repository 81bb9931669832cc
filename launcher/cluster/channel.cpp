#include "launcher/cluster/channel.h"

#include <fcntl.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "reports/record/text/message.h"

namespace graphproof::cluster {

void append_line(const std::filesystem::path& file, const std::string& line) {
  const auto fail = [&](const char* what) {
    throw record::WriteError({.what = std::string(what) + " " + file.string(),
                              .got = std::strerror(errno),
                              .want = "a file that can be appended to",
                              .why = "launcher and agent communicate through it",
                              .next = "free space in the run folder, then graphproof resume"});
  };
  const int descriptor = open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (descriptor < 0) fail("cannot open");
  const auto written = write(descriptor, line.data(), line.size());
  const int closed = close(descriptor);
  if (written != static_cast<ssize_t>(line.size()) || closed != 0) fail("cannot append to");
}

std::vector<std::string> LineReader::next() {
  std::vector<std::string> lines;
  const int descriptor = open(file_.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return lines;
  char buffer[65536];
  for (ssize_t got;
       (got = pread(descriptor, buffer, sizeof buffer, static_cast<off_t>(read_bytes_))) > 0;) {
    read_bytes_ += static_cast<std::size_t>(got);
    partial_.append(buffer, static_cast<std::size_t>(got));
  }
  close(descriptor);
  std::size_t begin = 0;
  for (std::size_t end; (end = partial_.find('\n', begin)) != partial_.npos; begin = end + 1)
    lines.push_back(partial_.substr(begin, end - begin));
  partial_.erase(0, begin);
  return lines;
}

std::chrono::milliseconds look_interval(const std::filesystem::path& folder) {
  // ext4, XFS, Btrfs, tmpfs, overlay, ZFS: statfs(2).
  constexpr std::array<unsigned long, 6> kLocal = {0xEF53,     0x58465342, 0x9123683E,
                                                   0x01021994, 0x794c7630, 0x2fc12fc1};
  struct statfs facts;
  const bool local = statfs(folder.c_str(), &facts) == 0 &&
                     std::find(kLocal.begin(), kLocal.end(),
                               static_cast<unsigned long>(facts.f_type)) != kLocal.end();
  return std::chrono::milliseconds(local ? 10 : 200);
}

}  // namespace graphproof::cluster

#include "launcher/watch/process_ends.h"

#include <poll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launcher/watch/command_processes.h"

namespace graphproof::launcher {

ProcessEnds::~ProcessEnds() {
  for (const auto& [name, process] : followed_)
    if (process.descriptor >= 0) close(process.descriptor);
}

int ProcessEnds::follow(int pid, std::int64_t start_ticks, const std::string& name) {
  if (followed_.contains(name) || followed_.size() >= kMostFollowed) return -1;
  const auto descriptor = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
  if (descriptor < 0) return -1;  // it has ended, or the kernel is older than 5.3
  followed_[name] = {.pid = pid, .descriptor = descriptor, .start_ticks = start_ticks};
  return descriptor;
}

std::vector<SignalledEnd> ProcessEnds::look() {
  std::vector<SignalledEnd> ends;
  for (auto& [name, process] : followed_) {
    pollfd ready{.fd = process.descriptor, .events = POLLIN, .revents = 0};
    if (process.descriptor < 0 || poll(&ready, 1, 0) <= 0) continue;
    if (const auto status = status_of_ended(process.pid, process.start_ticks);
        status && WIFSIGNALED(*status))
      ends.push_back({.name = name, .signal = WTERMSIG(*status)});
    close(process.descriptor);
    process.descriptor = -1;
  }
  return ends;
}

}  // namespace graphproof::launcher

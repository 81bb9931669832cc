#include "launcher/host/run_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "launcher/host/processes.h"
#include "matrix/input/input_error.h"
#include "reports/record/text/message.h"

namespace graphproof::launcher {
namespace {

std::string owner_text(const std::filesystem::path& file) {
  std::string text = proc_text(file);
  if (!text.empty() && text.back() == '\n') text.pop_back();
  return text.empty() ? "a process that has not given its name yet" : text;
}

std::string own_name() {
  char host[256] = "";
  gethostname(host, sizeof host - 1);
  return "process " + std::to_string(getpid()) + " on " + host;
}

}  // namespace

RunLock::RunLock(const std::filesystem::path& folder) {
  const std::filesystem::path file = folder / "lock";
  descriptor_ = open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (descriptor_ < 0)
    throw record::WriteError({.what = "cannot make " + file.string(),
                              .got = std::strerror(errno),
                              .want = "a file that can be written",
                              .why = "it keeps two launchers from running the same cases",
                              .next = "make the run folder writable"});
  if (flock(descriptor_, LOCK_EX | LOCK_NB) != 0) {
    close(descriptor_);
    throw matrix::InputError(
        {"another launcher runs in this folder", owner_text(file),
         "to be the only one in " + folder.string(),
         "two launchers in one run folder would run the same cases twice",
         "wait for it (graphproof status " + folder.string() + "), or end it with SIGINT"});
  }
  // A name that cannot be written costs a worse message later, but not the run.
  const std::string name = own_name() + "\n";
  [[maybe_unused]] const bool written =
      ftruncate(descriptor_, 0) == 0 && write(descriptor_, name.data(), name.size()) > 0;
}

RunLock::~RunLock() { close(descriptor_); }

std::optional<std::string> RunLock::owner(const std::filesystem::path& folder) {
  const std::filesystem::path file = folder / "lock";
  const int descriptor = open(file.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return std::nullopt;
  const bool held = flock(descriptor, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  close(descriptor);
  return held ? std::optional(owner_text(file)) : std::nullopt;
}

}  // namespace graphproof::launcher

#include "launcher/cli/input_file.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "matrix/input/input_error.h"

namespace graphproof::cli {
namespace {

// Much more than any input has. A wrong path must not fill the memory.
constexpr std::size_t kMostBytes = std::size_t{64} << 20;
constexpr int kPatience_ms = 30'000;  // for the next bytes of a pipe

struct Descriptor {
  int value = -1;
  ~Descriptor() {
    if (value >= 0) ::close(value);
  }
};

[[noreturn]] void refuse(const std::filesystem::path& file, std::string got, std::string want,
                         std::string next) {
  throw matrix::InputError({"cannot read " + file.string(),
                            std::move(got),
                            std::move(want),
                            "",
                            std::move(next),
                            {.source = file.string()}});
}

const char* kind_of(mode_t mode) {
  if (S_ISDIR(mode)) return "a folder";
  if (S_ISCHR(mode) || S_ISBLK(mode)) return "a device";
  if (S_ISSOCK(mode)) return "a socket";
  return "something else than a file";
}

}  // namespace

std::string read_input(const std::filesystem::path& file) {
  // Without O_NONBLOCK, opening a named pipe that has no writer would block.
  const Descriptor descriptor{::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  struct stat about{};
  if (descriptor.value < 0 || ::fstat(descriptor.value, &about) != 0)
    refuse(file, std::strerror(errno), "a file", "check the path " + file.string());
  if (!S_ISREG(about.st_mode) && !S_ISFIFO(about.st_mode))
    refuse(file, kind_of(about.st_mode), "a file", "name a file");
  const auto too_large = [&](std::size_t bytes) {
    refuse(file, std::to_string(bytes) + " bytes or more",
           "at most " + std::to_string(kMostBytes) + " bytes", "name another file");
  };
  if (S_ISREG(about.st_mode) && static_cast<std::size_t>(about.st_size) > kMostBytes)
    too_large(static_cast<std::size_t>(about.st_size));
  std::string text;
  char buffer[1 << 16];
  while (true) {
    pollfd ready{.fd = descriptor.value, .events = POLLIN, .revents = 0};
    if (::poll(&ready, 1, kPatience_ms) == 0)
      refuse(file,
             "a pipe in which nothing arrives for " + std::to_string(kPatience_ms / 1000) + " s",
             "a file, or a pipe that a program writes to", "check the program that writes to it");
    const ssize_t got = ::read(descriptor.value, buffer, sizeof buffer);
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (got < 0)
      refuse(file, std::strerror(errno), "a readable file", "check the path " + file.string());
    if (got == 0) return text;
    text.append(buffer, static_cast<std::size_t>(got));
    if (text.size() > kMostBytes) too_large(text.size());
  }
}

}  // namespace graphproof::cli

#include "launcher/cli/file_digest.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string_view>

#include "matrix/case/case.h"
#include "reports/record/text/message.h"

namespace graphproof::cli {
namespace {

[[noreturn]] void unreadable(const std::filesystem::path& file) {
  throw record::ReadError({"a file can't be read", file.string() + ": " + std::strerror(errno),
                           "a readable file", "its digest is part of the evidence",
                           "look at its owner and its rights"});
}

}  // namespace

std::string sha256_of_file(const std::filesystem::path& file) {
  const int descriptor = open(file.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) unreadable(file);
  struct stat state{};
  void* mapped = MAP_FAILED;
  std::size_t bytes = 0;
  if (fstat(descriptor, &state) == 0) {
    bytes = static_cast<std::size_t>(state.st_size);
    // A mapping of no bytes is an error.
    if (bytes > 0) mapped = mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, descriptor, 0);
  }
  const int error = errno;
  close(descriptor);
  if (mapped == MAP_FAILED && (bytes > 0 || !S_ISREG(state.st_mode))) {
    errno = error;
    unreadable(file);
  }
  if (bytes == 0) return matrix::sha256_hex("");
  madvise(mapped, bytes, MADV_SEQUENTIAL);
  const std::string digest =
      matrix::sha256_hex(std::string_view(static_cast<const char*>(mapped), bytes));
  munmap(mapped, bytes);
  return digest;
}

}  // namespace graphproof::cli

#include "launcher/host/memory_file.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

namespace graphproof::launcher {

MemoryFile::MemoryFile() : descriptor_(memfd_create("graphproof", MFD_CLOEXEC)) {
  if (descriptor_ < 0)
    throw std::system_error(errno, std::generic_category(),
                            "can't make a file in memory for the output of a child");
}

MemoryFile::~MemoryFile() {
  if (descriptor_ >= 0) close(descriptor_);
}

MemoryFile::MemoryFile(MemoryFile&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)) {}

std::string MemoryFile::first(std::size_t bytes) const {
  struct stat facts{};
  fstat(descriptor_, &facts);
  bytes = std::min(bytes, static_cast<std::size_t>(facts.st_size));
  std::string text(bytes, '\0');
  std::size_t have = 0;
  while (have < bytes) {
    const ssize_t got =
        pread(descriptor_, text.data() + have, bytes - have, static_cast<off_t>(have));
    if (got <= 0) break;
    have += static_cast<std::size_t>(got);
  }
  text.resize(have);
  return text;
}

}  // namespace graphproof::launcher

// A file without a name, in memory, for what a child prints and is seldom read. It is gone with its
// last descriptor.
#pragma once

#include <cstddef>
#include <string>

namespace graphproof::launcher {

/// Owns its descriptor.
class MemoryFile {
 public:
  /// Throws std::system_error. Children do not inherit it, except as their output (Child).
  MemoryFile();
  ~MemoryFile();
  MemoryFile(MemoryFile&& other) noexcept;
  MemoryFile& operator=(MemoryFile&&) = delete;

  int descriptor() const { return descriptor_; }
  /// At most this many bytes from its beginning.
  std::string first(std::size_t bytes) const;

 private:
  int descriptor_;
};

}  // namespace graphproof::launcher

// A file without a name, in memory: for what a child prints, of which most is never looked at. Gone
// with its last descriptor.
#pragma once

#include <cstddef>
#include <string>

namespace graphproof::launcher {

class MemoryFile {
 public:
  /// Throws std::system_error. Not inherited by children, save as their output (Child).
  MemoryFile();
  ~MemoryFile();
  MemoryFile(MemoryFile&& other) noexcept;
  MemoryFile& operator=(MemoryFile&&) = delete;

  int descriptor() const { return descriptor_; }
  /// At most so many bytes from its beginning.
  std::string first(std::size_t bytes) const;

 private:
  int descriptor_;
};

}  // namespace graphproof::launcher

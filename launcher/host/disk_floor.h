// How much space a run folder needs so that cases may start, and whether it has it.
#pragma once

#include <cstdint>
#include <filesystem>

namespace graphproof::launcher {

// Below this much free space in the run folder nothing more is started, so that neither ranks nor
// journal meet a full disk: a case leaves 200 KiB of evidence, and logs are longer.
inline constexpr std::int64_t kDiskFloor_bytes = 16 << 20;

/// The free space of one folder.
class DiskFloor {
 public:
  // Space is asked for at most this often: on a shared file system it is a question to a server.
  static constexpr std::int64_t kLook_ms = 1000;

  DiskFloor(std::filesystem::path folder, std::int64_t floor_bytes);

  /// Looks if the last look is kLook_ms old. Throws record::WriteError when less than the floor is
  /// free.
  void check(std::int64_t now_ms);
  /// Looks in any case.
  void check_now(std::int64_t now_ms);

 private:
  const std::filesystem::path folder_;
  const std::int64_t floor_bytes_;
  std::int64_t looked_ms_ = 0;
};

}  // namespace graphproof::launcher

#include "launcher/host/disk_floor.h"

#include <string>
#include <system_error>
#include <utility>

#include "reports/record/text/message.h"

namespace graphproof::launcher {

DiskFloor::DiskFloor(std::filesystem::path folder, std::int64_t floor_bytes)
    : folder_(std::move(folder)), floor_bytes_(floor_bytes) {}

void DiskFloor::check(std::int64_t now_ms) {
  if (now_ms - looked_ms_ >= kLook_ms) check_now(now_ms);
}

void DiskFloor::check_now(std::int64_t now_ms) {
  looked_ms_ = now_ms;
  std::error_code unknown;
  const std::filesystem::space_info space = std::filesystem::space(folder_, unknown);
  if (unknown || static_cast<std::int64_t>(space.available) >= floor_bytes_) return;
  throw record::WriteError(
      {.what = "the run folder " + folder_.string() + " is nearly full",
       .got = "less than " + std::to_string(floor_bytes_ >> 20) + " MiB free",
       .want = "room for evidence and logs",
       .why = "a case that meets a full disk fails for a reason that is not its own",
       .next = "free space, then graphproof resume " + folder_.string()});
}

}  // namespace graphproof::launcher

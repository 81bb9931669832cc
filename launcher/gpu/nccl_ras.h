// What NCCL itself knows of communicators that hang, by its RAS service (NCCL 2.24 and newer):
// which ranks of which one are behind. The service listens on a TCP port, so ranks have it only
// where NCCL_RAS_ENABLE asks for it, and then it is asked here, with the words of NCCL's guide for
// a client without a program of its own: "verbose status", and text until the end.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "launcher/host/child.h"

namespace graphproof::launcher {

/// Where ranks with this environment can be asked; nothing where they have no such service.
/// NCCL_RAS_ADDR names another place than NCCL's own: an IPv4 address or "localhost", and a port.
std::optional<std::string> ras_address(const Environment& environment);

class NcclRas {
 public:
  // The service waits for ranks that do not answer: five seconds by itself.
  static constexpr std::int64_t kAnswer_ms = 15000;
  // Of a job of a few thousand ranks.
  static constexpr std::int64_t kMost_bytes = 4 << 20;

  /// Asks; never waits. The answer, or why there is none, goes to `file`.
  NcclRas(const std::string& address, std::filesystem::path file, std::int64_t now_ms);
  ~NcclRas();
  NcclRas(const NcclRas&) = delete;
  NcclRas& operator=(const NcclRas&) = delete;

  /// True when the answer is complete, or the time is over; what came by then stays.
  bool step(std::int64_t now_ms);

 private:
  void end(const std::string& trouble);

  std::filesystem::path file_;
  std::int64_t deadline_ms_;
  int socket_ = -1;
  bool asked_ = false;
  std::string answer_;
};

}  // namespace graphproof::launcher

// What NCCL itself knows of communicators that hang, by its RAS service (NCCL 2.24 and newer):
// which ranks of which communicator are behind. The service listens on a TCP port, so ranks have it
// only where NCCL_RAS_ENABLE asks for it. It is asked as NCCL's guide says for a client without a
// program of its own: the client sends "verbose status" and reads text until the end.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "launcher/host/child.h"

namespace graphproof::launcher {

/// The address at which ranks with this environment can be asked; nothing where they have no such
/// service. NCCL_RAS_ADDR names another place than NCCL's default: an IPv4 address or "localhost",
/// and a port.
std::optional<std::string> ras_address(const Environment& environment);

/// One question to the service.
class NcclRas {
 public:
  // The service itself waits five seconds for ranks that do not answer.
  static constexpr std::int64_t kAnswer_ms = 15000;
  // The answer of a job with a few thousand ranks is smaller.
  static constexpr std::int64_t kMost_bytes = 4 << 20;

  /// Asks the service; never waits. The answer, or why there is none, goes to `file`.
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

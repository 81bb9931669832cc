// What NCCL's own log says about the buffers that it registered: the only proof that registration
// took part. Pure, and tolerant: a line that it does not know is left alone, because the log of
// another version has others.
#pragma once

#include <set>
#include <string>
#include <string_view>

namespace graphproof::checks {

struct NcclLog {
  int info_lines = 0;   // of any kind: NCCL_DEBUG=INFO was in force
  int collectives = 0;  // calls that it announced (subsystem COLL)
  std::set<std::string>
      registered;  // addresses of buffers that it registered with a peer, or found registered
  std::set<std::string> refused;    // addresses that it tried to register and could not
  std::set<std::string> protocols;  // "RING SIMPLE" of its tuning lines
};

/// `log` is a rank's slice. The lines are those of NCCL 2.28.9 (strings of the library and
/// src/transport/p2p.cc):
///   HOST:PID:TID [GPU] NCCL INFO rank 0 - IPC register buffer 0x7f.. size 16777216 (baseAddr ..)
///   to peer 1 regAddr ..
NcclLog read_nccl_log(std::string_view log);

}  // namespace graphproof::checks

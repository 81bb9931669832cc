// Reads in NCCL's own log which buffers it registered. Nothing else shows whether it registered
// any. Unknown lines are ignored, because other versions write other lines.
#pragma once

#include <set>
#include <string>
#include <string_view>

namespace graphproof::checks {

/// What a rank's log shows of NCCL.
struct NcclLog {
  int info_lines = 0;   // of any kind; above 0 if NCCL_DEBUG=INFO was set
  int collectives = 0;  // calls (subsystem COLL)
  std::set<std::string>
      registered;  // addresses of buffers that NCCL registered with a peer or found registered
  std::set<std::string> refused;    // addresses that NCCL tried to register and could not
  std::set<std::string> protocols;  // "RING SIMPLE", from its tuning lines
};

/// `log` is a rank's slice of the batch's log. The lines are those of NCCL 2.28.9 (strings of the
/// library and src/transport/p2p.cc):
///   HOST:PID:TID [GPU] NCCL INFO rank 0 - IPC register buffer 0x7f.. size 16777216 (baseAddr ..)
///   to peer 1 regAddr ..
NcclLog read_nccl_log(std::string_view log);

}  // namespace graphproof::checks

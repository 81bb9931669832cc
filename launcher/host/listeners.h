// Which sockets of this host listen on which TCP port, in this process's network namespace.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace graphproof::launcher {

/// Socket -> TCP port on which it listens. A socket is named by its number in the kernel, which no
/// other socket ever has.
using Listeners = std::map<std::string, int>;

/// All listening sockets.
Listeners all_listeners();
/// The listening sockets of these processes.
Listeners listeners_of(const std::vector<int>& pids);

}  // namespace graphproof::launcher

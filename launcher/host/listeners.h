// Who listens on which TCP port of this host, in this process's network namespace.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace graphproof::launcher {

/// A socket's number in the kernel, which no other socket ever has, and the TCP port on which it
/// listens.
using Listeners = std::map<std::string, int>;

/// All that there are.
Listeners all_listeners();
/// Those of these processes.
Listeners listeners_of(const std::vector<int>& pids);

}  // namespace graphproof::launcher

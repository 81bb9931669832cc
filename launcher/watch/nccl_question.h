// What NCCL itself says of a command that hangs. NCCL 2.24 and newer answer questions about their
// communicators on a TCP port of the host (launcher/gpu/nccl_ras.h), unless NCCL_RAS_ENABLE=0. The
// service of one rank answers for all ranks of its job, also for those of other hosts.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "launcher/host/child.h"

namespace graphproof::launcher {

/// Where the ranks of a command with this environment can be asked; nothing where the service is
/// switched off.
std::optional<std::string> watched_ras_address(const Environment& environment);

/// "127.0.0.1:PORT" with a port on which nothing listens now: a job of its own answers there, not
/// another one of this host. Empty if the system gives none.
std::string own_ras_address();

/// What matters of an answer: the lines under its headings Errors and Warnings, at most a few tens.
/// If it has neither, one line that says so; of a text that is no answer, its first line.
std::vector<std::string> ras_findings(const std::string& answer);

/// Asks, and waits for the answer for at most NcclRas::kAnswer_ms. The whole answer, or why there
/// is none, is then in `file`. Returns its findings; nothing where no service answers and
/// `uses_nccl` is false, because then there is none to ask.
std::optional<std::vector<std::string>> ask_nccl(const Environment& environment,
                                                 const std::filesystem::path& file, bool uses_nccl);

}  // namespace graphproof::launcher

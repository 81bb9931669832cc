// What a process loaded and how it uses it, in the terms of matrix/tables/bad_stacks.json.
#pragma once

#include <optional>
#include <string>

#include "matrix/catalogue/bad_stacks.h"
#include "suites/checks/watched/job/watched_job.h"

namespace graphproof::checks::watched {

/// Whether a capture of it holds calls of NCCL, or a graph of it kernels of NCCL.
bool captured_communication(const JobProcess& process);
/// Whether NCCL may register the buffers of captured calls (NCCL_GRAPH_REGISTER, 1 by default).
bool registers_captured_buffers(const JobProcess& process);

/// The version of a component of the table; nothing if it is not loaded or not known.
std::optional<matrix::Version> version_of(const std::string& component, const JobProcess& process);

/// What meets the row, such as "libnccl 2.28.9"; nothing if the process does not meet it.
std::optional<std::string> meets(const matrix::BadStack& row, const JobProcess& process);

}  // namespace graphproof::checks::watched

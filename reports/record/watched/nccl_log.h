// Buffer registrations in a log of NCCL that was written with NCCL_DEBUG=INFO and the subsystem
// REG.
#pragma once

#include <string>
#include <string_view>

#include "reports/record/evidence/lines/watched_memory_lines.h"

namespace graphproof::record {

/// `file` names the log. The lines looked for are those of src/register in NCCL 2.27 to 2.30.
NcclRegistrationLine registrations_in(std::string_view log, std::string file);

}  // namespace graphproof::record

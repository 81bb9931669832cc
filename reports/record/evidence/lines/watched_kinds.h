// Every kind of line of a watched process, of which there is one file of lines. Cases have other
// kinds (kinds.h).
#pragma once

#include "reports/record/evidence/lines/watched_graph_lines.h"
#include "reports/record/evidence/lines/watched_memory_lines.h"
#include "reports/record/evidence/lines/watched_process_lines.h"

namespace graphproof::record {

using WatchedKinds = Joined<WatchedProcessKinds, WatchedGraphKinds, WatchedMemoryKinds>::Type;

}  // namespace graphproof::record

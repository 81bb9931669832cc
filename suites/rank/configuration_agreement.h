// Checks that all ranks of a batch have the same configuration, before their first collective.
// Ranks with different ones would issue different collectives, and hang or train on different data.
#pragma once

#include <string_view>

#include "fixtures/comm/transport/world.h"

namespace graphproof::suites {

/// Compares `digest`, that of the batch file which this rank has read, on all ranks. All ranks call
/// it with digests of the same length. Throws record::Error on every rank, with the ranks whose
/// digest differs from that of rank 0. Waits `limit` at most.
void agree_on_configuration(comm::World& world, std::string_view digest, comm::Milliseconds limit);

}  // namespace graphproof::suites

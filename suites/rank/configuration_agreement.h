// Whether all ranks of a batch were given the same configuration: asked before their first
// collective, because ranks that were not issue different ones, and hang or train on different
// data.
#pragma once

#include <string_view>

#include "fixtures/comm/transport/world.h"

namespace graphproof::suites {

/// `digest`: of the batch file that this rank has read; every rank's has the same length. All ranks
/// call it. Throws record::Error on every rank, naming those that have another one than rank 0.
/// Waits `limit` at most.
void agree_on_configuration(comm::World& world, std::string_view digest, comm::Milliseconds limit);

}  // namespace graphproof::suites

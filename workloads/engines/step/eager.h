// impl none: every step runs eagerly. Graphs are compared with this engine.
//
// Contract: reads the tensors of the batch itself; copies, clones and captures nothing; returns the
// static losses, gradients and parameters of the step. Runs a step again as paged_stash.h says.
// Refuses nothing. The observer is never called.
#pragma once

#include "workloads/engines/capture/engine.h"

namespace graphproof::engines {

/// See make_engine().
std::unique_ptr<Engine> make_eager(const EngineConfig& config, capture::Device& device,
                                   c10::Stream stream, workloads::TrainStep& step,
                                   Observer* observer);

}  // namespace graphproof::engines

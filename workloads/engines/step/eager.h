// impl none: every step runs eagerly, the reference that graphs are compared with.
//
// Contract: reads the batch's own tensors; copies, clones and captures nothing; hands out the
// step's static losses, gradients and parameters. Refuses nothing. The observer is never called.
#pragma once

#include "workloads/engines/capture/engine.h"

namespace graphproof::engines {

std::unique_ptr<Engine> make_eager(const EngineConfig& config, capture::Device& device,
                                   c10::Stream stream, workloads::TrainStep& step,
                                   Observer* observer);

}  // namespace graphproof::engines

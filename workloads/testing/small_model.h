// Sizes for replays, whose tests run each step many times: what they show is no question of sizes.
#pragma once

#include "workloads/config/model_config.h"

namespace graphproof::engines {

inline workloads::ModelConfig small(workloads::ModelConfig config) {
  config.hidden = 32;
  config.ffn = config.vocab = 64;
  config.seq_length = 8;
  return config;
}

}  // namespace graphproof::engines

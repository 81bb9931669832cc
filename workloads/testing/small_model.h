// Small sizes for tests that replay each step many times, whose results do not depend on sizes.
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

// What the reference GPT is (ModelConfig) and where this rank stands in it (Layout). Plain values, no LibTorch.
#pragma once

#include <cstdint>
#include <string>

namespace graphproof::workloads {

struct ModelConfig {
  std::int64_t layers = 2, hidden = 64, heads = 4, kv_groups = 4, ffn = 256, vocab = 128;
  std::int64_t seq_length = 16, microbatch_size = 2, microbatches = 1;
  bool qkv_bias = false, linear_bias = false;
  double dropout = 0.0;  // probability
};

/// Where this rank stands. A group of one rank issues no collective; names are those of comm::ProcessGroups.
struct Layout {
  int tp = 1, dp = 1, tp_rank = 0, dp_rank = 0;
  std::string tp_group, dp_group;
};

}  // namespace graphproof::workloads

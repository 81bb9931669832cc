// How context parallel ranks share sequences (Liu et al. 2023, ring attention; chunks as
// Megatron-LM's): a sequence is cut into 2*cp chunks of one length, and rank r has chunks r and
// 2*cp - 1 - r, an early and a late one, so that under a causal mask all ranks have equally much to
// attend to. Everything but attention works on a token alone and knows nothing of it.
//
// Attention brings the ranks' keys and values together (attention.h) in the order of the ranks: all
// of rank 0's tokens, then all of rank 1's. Sums over keys have no order of positions to keep;
// masks do, and are made for that order.
#pragma once

#include <cstdint>
#include <vector>

#include "fixtures/tensors/torch.h"
#include "workloads/config/model_config.h"

namespace graphproof::workloads {

/// Of x [length, ...], a row for each position, those that rank `rank` of `cp` has, in its order:
/// [length / cp, ...]. Made of pieces and by no index, so that their gradient needs no atomics.
/// REQUIRES: 2 * cp divides length, or cp is 1.
inline at::Tensor rows_of_rank(const at::Tensor& x, int cp, int rank) {
  if (cp == 1) return x;
  const std::int64_t chunk = x.size(0) / (2 * cp);
  return at::cat(
      {x.narrow(0, rank * chunk, chunk), x.narrow(0, (2 * cp - 1 - rank) * chunk, chunk)});
}

/// Positions of the tokens that rank `rank` of `cp` has of a sequence of `length`: [length / cp]
/// int64, on the host.
inline at::Tensor positions_of(std::int64_t length, int cp, int rank) {
  return rows_of_rank(at::arange(length, at::kLong), cp, rank);
}

/// Of this rank.
inline at::Tensor own_positions(const ModelConfig& config, const Layout& layout) {
  return positions_of(config.seq_length, layout.cp, layout.cp_rank);
}

/// Of all keys and values, rank by rank: [length] int64, on the host.
inline at::Tensor gathered_positions(const ModelConfig& config, const Layout& layout) {
  std::vector<at::Tensor> ranks;
  for (int rank = 0; rank < layout.cp; ++rank)
    ranks.push_back(positions_of(config.seq_length, layout.cp, rank));
  return at::cat(ranks);
}

}  // namespace graphproof::workloads

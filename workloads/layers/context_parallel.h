// How context parallel ranks split sequences (ring attention, Liu et al. 2023; chunks as in
// Megatron-LM). A sequence is cut into 2*cp chunks of equal length, and rank r has chunks r and
// 2*cp - 1 - r, an early one and a late one, so that all ranks have equally much work under a
// causal mask. Only attention and mamba mixers are affected, because everything else works on
// single tokens.
//
// Attention orders keys and values by rank (attention.h): all tokens of rank 0, then all of rank 1,
// and so on. Sums over keys do not depend on the order of positions; masks do, and are made for
// this order.
#pragma once

#include <cstdint>
#include <vector>

#include "fixtures/tensors/torch.h"
#include "workloads/config/model_config.h"

namespace graphproof::workloads {

/// x [length, ...], a row for each position. Returns the rows of rank `rank` of `cp` in its order,
/// [length / cp, ...]. Uses slices and no index, so that the gradient needs no atomics. REQUIRES:
/// 2 * cp divides length, or cp is 1.
inline at::Tensor rows_of_rank(const at::Tensor& x, int cp, int rank) {
  if (cp == 1) return x;
  const std::int64_t chunk = x.size(0) / (2 * cp);
  return at::cat(
      {x.narrow(0, rank * chunk, chunk), x.narrow(0, (2 * cp - 1 - rank) * chunk, chunk)});
}

/// The positions of the tokens that rank `rank` of `cp` has in a sequence of `length` tokens:
/// [length / cp] int64, on the host.
inline at::Tensor positions_of(std::int64_t length, int cp, int rank) {
  return rows_of_rank(at::arange(length, at::kLong), cp, rank);
}

/// positions_of() of this rank.
inline at::Tensor own_positions(const ModelConfig& config, const Layout& layout) {
  return positions_of(config.seq_length, layout.cp, layout.cp_rank);
}

/// The positions of all keys and values, rank by rank: [length] int64, on the host.
inline at::Tensor gathered_positions(const ModelConfig& config, const Layout& layout) {
  std::vector<at::Tensor> ranks;
  for (int rank = 0; rank < layout.cp; ++rank)
    ranks.push_back(positions_of(config.seq_length, layout.cp, rank));
  return at::cat(ranks);
}

}  // namespace graphproof::workloads

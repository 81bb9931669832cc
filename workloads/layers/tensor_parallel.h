// The beginning and the end of a tensor parallel region (Megatron-LM's mappings), and the order of
// rows outside it. Inside the region activations differ by rank. Outside they are the same on all T
// ranks, unless there is sequence parallelism (Korthikanti et al. 2022): each rank then has its
// part of every sequence outside, so norms, dropout and residuals are split too; the region begins
// with an all-gather and ends with a reduce-scatter instead of a sum. With T = 1 neither end does
// anything.
//
// N = B*S tokens of a microbatch. A sequence has P parts outside the region: P = T with sequence
// parallelism, otherwise P = 1. Rows are ordered part by part: token (b, s) is row
// (s / (S/P) * B + b) * S/P + s % (S/P). The part of a rank is therefore contiguous in memory,
// which the collectives need, and with P = 1 the order is that of the batch.
#pragma once

#include "fixtures/comm/collectives.h"
#include "fixtures/tensors/torch.h"
#include "workloads/config/model_config.h"

namespace graphproof::workloads {

/// x [N/P, ...] float. Returns [N, ...]. The backward sums the gradients of the ranks and returns
/// this rank's part.
inline at::Tensor enter_tensor_parallel(const at::Tensor& x, const Layout& layout) {
  if (layout.tp == 1) return x;
  return layout.sequence_parallel ? comm::all_gather(x, layout.tp_group)
                                  : comm::copy_to(x, layout.tp_group);
}

/// x [N, ...], a partial sum. Returns the sum over the ranks, [N/P, ...]. The backward returns the
/// gradient of all N rows.
inline at::Tensor leave_tensor_parallel(const at::Tensor& x, const Layout& layout) {
  if (layout.tp == 1) return x;
  return layout.sequence_parallel ? comm::reduce_scatter(x, layout.tp_group)
                                  : comm::reduce_from(x, layout.tp_group);
}

/// x [B, S, ...] to rows [N, ...].
inline at::Tensor rows_of(const at::Tensor& x, const Layout& layout) {
  const int parts = layout.sequence_parts();
  return parts == 1 ? x.flatten(0, 1) : x.unflatten(1, {parts, -1}).transpose(0, 1).flatten(0, 2);
}

/// Rows [N, ...] to [B, S, ...].
inline at::Tensor sequences_of(const at::Tensor& rows, std::int64_t batch, const Layout& layout) {
  const int parts = layout.sequence_parts();
  return parts == 1 ? rows.unflatten(0, {batch, -1})
                    : rows.unflatten(0, {parts, batch, -1}).transpose(0, 1).flatten(1, 2);
}

}  // namespace graphproof::workloads

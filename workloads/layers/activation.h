// What stands between the two linear layers of a feed-forward part. With a gate (Shazeer 2020) the
// first layer has two rows for each inner element, the gate's and the value's, one behind the
// other: so a tensor parallel shard holds whole pairs. Megatron-LM keeps all gates before all
// values within each rank, so its full weight depends on the layout; ours must not.
#pragma once

#include "fixtures/tensors/torch.h"
#include "workloads/config/model_config.h"

namespace graphproof::workloads {

/// Rows of the first linear layer for each inner element.
inline std::int64_t rows_of_element(Activation activation) {
  return activation == Activation::swiglu ? 2 : 1;
}

/// x [..., F * rows_of_element] to [..., F]: gelu(x) in the tanh form, or silu(gate) * value.
inline at::Tensor activate(const at::Tensor& x, Activation activation) {
  if (activation == Activation::gelu) return at::gelu(x, "tanh");
  const at::Tensor pairs = x.unflatten(-1, {-1, 2});
  return at::silu(pairs.select(-1, 0)) * pairs.select(-1, 1);
}

}  // namespace graphproof::workloads

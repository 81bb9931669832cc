// The activation between the two linear layers of a feed-forward part. With a gate (Shazeer 2020)
// the first layer has two rows for each inner element, the gate and then the value, so that a
// tensor parallel shard holds whole pairs. Megatron-LM puts all gates of a rank before all its
// values, so its full weight depends on the layout; here it must not.
#pragma once

#include "fixtures/tensors/torch.h"
#include "workloads/config/model_config.h"

namespace graphproof::workloads {

/// The number of rows of the first linear layer for each inner element.
inline std::int64_t rows_of_element(Activation activation) {
  return activation == Activation::swiglu ? 2 : 1;
}

/// x [..., F * rows_of_element]. Returns [..., F]: gelu(x) in its tanh form, or silu(gate) * value.
inline at::Tensor activate(const at::Tensor& x, Activation activation) {
  if (activation == Activation::gelu) return at::gelu(x, "tanh");
  const at::Tensor pairs = x.unflatten(-1, {-1, 2});
  return at::silu(pairs.select(-1, 0)) * pairs.select(-1, 1);
}

}  // namespace graphproof::workloads

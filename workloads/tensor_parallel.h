// The two ends of a tensor parallel region, as Megatron-LM's mappings: activations are the same on all T ranks outside
// it and differ inside it. With T = 1 both are the identity and issue nothing.
#pragma once

#include "fixtures/comm/collectives.h"
#include "fixtures/torch.h"
#include "workloads/model_config.h"

namespace graphproof::workloads {

/// x [any] float. Forward: x itself. Backward: the ranks' gradients are summed.
inline at::Tensor enter_tensor_parallel(const at::Tensor& x, const Layout& layout) {
  return layout.tp == 1 ? x : comm::copy_to(x, layout.tp_group);
}

/// x [any], a partial sum. Forward: the sum over the ranks. Backward: the gradient as it is.
inline at::Tensor leave_tensor_parallel(const at::Tensor& x, const Layout& layout) {
  return layout.tp == 1 ? x : comm::reduce_from(x, layout.tp_group);
}

}  // namespace graphproof::workloads

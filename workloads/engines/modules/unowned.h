// A tensor that refers to memory without keeping it alive. The static tensors of a graph are
// replaced by such tensors once graphs that are captured later may reuse their memory in the pool.
#pragma once

#include "fixtures/tensors/torch.h"

namespace graphproof::engines {

/// Refers to the memory of `tensor`, with the same layout, without owning its storage and without
/// autograd history.
inline at::Tensor unowned(const at::Tensor& tensor) {
  c10::Storage storage(c10::Storage::use_byte_size_t(), tensor.storage().nbytes(),
                       at::DataPtr(tensor.storage().mutable_data(), tensor.device()),
                       /*allocator=*/nullptr, /*resizable=*/false);
  at::Tensor view = at::detail::make_tensor<c10::TensorImpl>(std::move(storage), tensor.key_set(),
                                                             tensor.dtype());
  view.unsafeGetTensorImpl()->set_sizes_and_strides(tensor.sizes(), tensor.strides(),
                                                    tensor.storage_offset());
  return view;
}

}  // namespace graphproof::engines

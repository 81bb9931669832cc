// A tensor that knows where memory is and keeps nothing alive: what a graph's statics become once
// their place in the graph pool may be used again by graphs that are captured later.
#pragma once

#include "fixtures/tensors/torch.h"

namespace graphproof::engines {

/// The same bytes in the same layout, without a share in the storage and without autograd history.
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

// Regions in which PyTorch casts the operands of matrix products to 16 bits, as with torch.autocast
// (Megatron-LM's enable_autocast runs the forward of a microbatch in one). Parameters and the
// residual stream stay in fp32; what the backward does follows from the casts that autograd saw.
//
// With a cache, a region casts each parameter once and keeps the copy until the outermost region
// ends. A copy that was made before a capture is memory outside of the graph, so replays would read
// the parameter of that time; one that was made in a capture is memory of the graph's pool. A part
// that is captured alone therefore needs a region without a cache, as
// torch.cuda.make_graphed_callables requires (rule P001). A graph of a whole pass contains its
// region, and with it the casts and the end of the cache.
#pragma once

#include "fixtures/tensors/torch.h"

namespace graphproof::workloads {

/// What torch.autocast sets for one type of device on the calling thread.
struct AutocastState {
  bool enabled = false;
  at::ScalarType type = at::kBFloat16;  // of the products
  bool cache = false;                   // cache_enabled
};
/// The state of the calling thread.
AutocastState autocast_state(c10::DeviceType device);

/// A region that begins with the object and ends with it, on one thread. Regions may nest. At the
/// end of the outermost region PyTorch's cache is emptied, which all threads share.
class AutocastRegion {
 public:
  /// Opens no region if `state` is not enabled.
  AutocastRegion(c10::DeviceType device, const AutocastState& state);
  ~AutocastRegion();
  AutocastRegion(const AutocastRegion&) = delete;
  AutocastRegion& operator=(const AutocastRegion&) = delete;

 private:
  void set(const AutocastState& state) const;

  c10::DeviceType device_;
  bool opened_;
  AutocastState before_;
};

/// `x` [any] as a product in the current region reads it, differentiable; `x` itself outside of
/// regions. For products that are nodes of autograd of our own: their backward runs outside of the
/// region and needs the operands of the forward. A parameter itself, unlike a view of it, is cast
/// once where the region has a cache.
at::Tensor autocast_operand(const at::Tensor& x);

}  // namespace graphproof::workloads

#include "workloads/forward/autocast.h"

#include <ATen/autocast_mode.h>

namespace graphproof::workloads {

namespace autocast = at::autocast;

AutocastState autocast_state(c10::DeviceType device) {
  return {.enabled = autocast::is_autocast_enabled(device),
          .type = autocast::get_autocast_dtype(device),
          .cache = autocast::is_autocast_cache_enabled()};
}

AutocastRegion::AutocastRegion(c10::DeviceType device, const AutocastState& state)
    : device_(device), opened_(state.enabled), before_(autocast_state(device)) {
  if (!opened_) return;
  autocast::increment_nesting();
  set(state);
}

AutocastRegion::~AutocastRegion() {
  if (!opened_) return;
  if (autocast::decrement_nesting() == 0) autocast::clear_cache();
  set(before_);
}

void AutocastRegion::set(const AutocastState& state) const {
  autocast::set_autocast_enabled(device_, state.enabled);
  autocast::set_autocast_dtype(device_, state.type);
  autocast::set_autocast_cache_enabled(state.cache);
}

at::Tensor autocast_operand(const at::Tensor& x) {
  const c10::DeviceType device = x.device().type();
  if (!autocast::is_autocast_enabled(device)) return x;
  return autocast::cached_cast(autocast::get_autocast_dtype(device), x, device);
}

}  // namespace graphproof::workloads

#include "workloads/model/layer_schedule.h"

#include <algorithm>
#include <cstddef>

namespace graphproof::workloads {

void run_layer_schedule(LayerSlot& forward, LayerSlot& backward, bool delayed,
                        const LayerScheduleNotes& notes,
                        const std::function<void()>& before_last_weight_gradients) {
  const std::size_t forwards = forward.layers ? forward.layers->size() : 0,
                    backwards = backward.layers ? backward.layers->size() : 0;
  const auto weight_gradients = [&](LayerPass& pass) {
    notes.weight_gradients(pass.layer());
    pass.before_experts_weight_gradients();
    notes.added(pass.layer().before_experts_weights());
  };
  for (std::size_t i = 0; i < std::max(forwards, backwards); ++i) {
    LayerPass* const f = i < forwards ? &(*forward.layers)[i] : nullptr;
    LayerPass* const b = i < backwards ? &(*backward.layers)[backwards - 1 - i] : nullptr;
    if (b) {
      b->after_experts_backward(backward.x);
      b->combine_backward();
    }
    if (f) {
      notes.forward(f->layer());
      f->before_experts(forward.x);
      f->dispatch();
    }
    if (b) {
      b->expert_backward();
      b->dispatch_backward();
      if (delayed) {
        b->expert_weight_gradients();
        notes.added(b->layer().expert_weights());
      }
    }
    if (f) {
      f->expert_forward();
      f->combine();
    }
    if (b) {
      notes.backward(b->layer());
      backward.x = b->before_experts_backward();
      if (delayed && i + 1 < backwards) weight_gradients(*b);
    }
    if (f) forward.x = f->after_experts();
  }
  before_last_weight_gradients();
  if (delayed && backwards > 0) weight_gradients(backward.layers->front());
}

}  // namespace graphproof::workloads

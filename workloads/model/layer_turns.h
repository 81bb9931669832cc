// The layers of one microbatch's forward beside those of another's backward, in Megatron-LM's order
// (combined_1f1b): what a layer of one computes hides what the other's tokens need to travel.
// Either may be missing.
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <vector>

#include "workloads/model/layer_pass.h"

namespace graphproof::workloads {

/// A chunk's layers in one microbatch.
using ChunkPass = std::vector<LayerPass>;

/// What one of the two needs and leaves: x [N/P, H] of the forward, the gradient of it of the
/// backward.
struct LayerTurn {
  ChunkPass* layers = nullptr;  // null: missing
  at::Tensor x;
};

/// Called as a layer is about to be run; `added` with weights whose delayed gradients are enqueued.
struct LayerTurnNotes {
  std::function<void(const Layer&)> forward, backward, weight_gradients;
  std::function<void(const std::vector<at::Tensor>&)> added;
};

/// Runs both; x of each is then what the chunk returns, and the gradient of what it was given.
/// `delayed`: weight gradients are owed after each backward, and called for behind it; those of the
/// chunk's first layer when everything else is enqueued.
inline void run_layer_turns(LayerTurn& forward, LayerTurn& backward, bool delayed,
                            const LayerTurnNotes& notes,
                            const std::function<void()>& before_last_weight_gradients) {
  const std::size_t forwards = forward.layers ? forward.layers->size() : 0,
                    backwards = backward.layers ? backward.layers->size() : 0;
  const auto weight_gradients = [&](LayerPass& pass) {
    notes.weight_gradients(pass.layer());
    pass.attend_weight_gradients();
    notes.added(pass.layer().attend_weights());
  };
  for (std::size_t i = 0; i < std::max(forwards, backwards); ++i) {
    LayerPass* const f = i < forwards ? &(*forward.layers)[i] : nullptr;
    LayerPass* const b = i < backwards ? &(*backward.layers)[backwards - 1 - i] : nullptr;
    if (b) {
      b->finish_backward(backward.x);
      b->combine_backward();
    }
    if (f) {
      notes.forward(f->layer());
      f->attend(forward.x);
      f->dispatch();
    }
    if (b) {
      b->work_backward();
      b->dispatch_backward();
      if (delayed) {
        b->work_weight_gradients();
        notes.added(b->layer().work_weights());
      }
    }
    if (f) {
      f->work();
      f->combine();
    }
    if (b) {
      notes.backward(b->layer());
      backward.x = b->attend_backward();
      if (delayed && i + 1 < backwards) weight_gradients(*b);
    }
    if (f) forward.x = f->finish();
  }
  before_last_weight_gradients();
  if (delayed && backwards > 0) weight_gradients(backward.layers->front());
}

}  // namespace graphproof::workloads

// Runs the layers of one microbatch's forward interleaved with those of another's backward, in the
// order of Megatron-LM's combined_1f1b: while the tokens of one travel, a layer of the other
// computes. Either of the two may be missing.
#pragma once

#include <functional>
#include <vector>

#include "workloads/model/layer_pass.h"

namespace graphproof::workloads {

/// The layers of a chunk in one microbatch, in order of the forward.
using ChunkPass = std::vector<LayerPass>;

/// One of the two passes of run_layer_schedule(). `x` is the tensor that it consumes and produces:
/// the activations [N/P, H] in a forward, their gradient (same shape) in a backward.
struct LayerSlot {
  ChunkPass* layers = nullptr;  // null if there is no such pass
  at::Tensor x;
};

/// Callbacks. The first three are called immediately before the work of a layer is enqueued,
/// `added` after the delayed gradients of the given weights have been enqueued.
struct LayerScheduleNotes {
  std::function<void(const Layer&)> forward, backward, weight_gradients;
  std::function<void(const std::vector<at::Tensor>&)> added;
};

/// Runs both passes. Afterwards forward.x is the output of the chunk, and backward.x the gradient
/// of the chunk's input. `delayed`: the backwards defer their weight gradients, and the gradients
/// of each layer are added after its backward; those of the chunk's first layer come last, after
/// `before_last_weight_gradients`, which is called when everything else is enqueued.
void run_layer_schedule(LayerSlot& forward, LayerSlot& backward, bool delayed,
                        const LayerScheduleNotes& notes,
                        const std::function<void()>& before_last_weight_gradients);

}  // namespace graphproof::workloads

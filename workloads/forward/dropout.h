// Dropout at the three sites of a transformer layer and the one site of a mamba layer. As in
// Megatron-LM, each tensor parallel rank draws its own mask inside a tensor parallel region
// (attention probabilities: each rank has different heads). Outside it the T ranks have the same
// activations and draw the same mask, except with sequence parallelism, where each rank has
// different tokens. The two kinds of masks are drawn from the regions of fixtures::RngTracker.
//
// A recomputed part must draw the masks of its forward again. Megatron-LM resets the states of the
// tracker for that, which is impossible in a capture. Here each site of each recomputed layer has
// its own region and a repeat of that region, from which the backward draws. This works because the
// backward visits the microbatches of a layer in the same order as the forward, although it visits
// the layers in another. A run with recompute therefore draws other masks than a run without.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "fixtures/device/rng_tracker.h"
#include "fixtures/tensors/named_tensor.h"
#include "fixtures/tensors/torch.h"
#include "workloads/config/model_config.h"
#include "workloads/faults/hooks/fault_hooks.h"
#include "workloads/forward/running_microbatch.h"

namespace graphproof::workloads {

/// Where in a layer a mask is applied.
enum class DropoutSite { core_attention, attention, mlp, mamba };

/// Where in the model a mask is drawn. `again`: the draw of recompute, in backward.
struct DropoutPlace {
  std::int64_t layer = 0;
  DropoutSite site = DropoutSite::attention;
  bool again = false;
};

/// The masks of a model on this rank. Used by the thread that runs the step; enqueues on the
/// current stream and may be captured.
class Dropout {
 public:
  /// Allocates one static tensor for each mask and adds the regions of recompute to `tracker`.
  /// `tracker` and `faults` outlive it.
  Dropout(const ModelConfig& config, const Layout& layout, fixtures::RngTracker& tracker,
          std::uint64_t seed, at::Device device, faults::FaultHooks& faults);

  /// The masks drawn from now on belong to `microbatch`.
  void begin(std::int64_t microbatch);

  /// While on, apply() returns x and nothing is drawn: evaluation changes neither masks nor random
  /// number states.
  void evaluating(bool on) { evaluating_ = on; }

  /// x [any] float. Returns x with each element set to zero with the configured probability and the
  /// others scaled by 1 / (1 - probability); x itself if the probability is 0. Copies the mask to
  /// the static tensor of its microbatch.
  at::Tensor apply(const at::Tensor& x, DropoutPlace place);
  /// The same in two steps, for a site whose x comes in pieces. The first returns the mask of all
  /// pieces, [sizes] uint8, undefined if the probability is 0; the second applies a piece of it.
  at::Tensor mask(at::IntArrayRef sizes, const at::TensorOptions& options, DropoutPlace place);
  at::Tensor apply(const at::Tensor& x, const at::Tensor& mask) const;

  /// "mask:M.LAYER.SITE" uint8: the mask of each microbatch M in the last step, 1 where x is kept;
  /// "mask:M.LAYER.SITE_again" for the draws of recompute. Addresses never change.
  const std::vector<fixtures::NamedTensor>& tensors() const { return masks_; }

 private:
  std::string region_of(DropoutPlace place) const;
  bool recomputed(DropoutPlace place) const;
  at::Tensor drawn_mask(at::IntArrayRef sizes, const at::TensorOptions& options,
                        DropoutPlace place);

  bool differs_by_rank(DropoutSite site) const;

  ModelConfig config_;
  Layout layout_;
  fixtures::RngTracker& tracker_;
  faults::FaultHooks& faults_;
  bool evaluating_ = false;
  RunningMicrobatch running_;
  /// [M, shape of the mask] uint8 at index_of(place) in dropout.cpp; undefined if none is drawn.
  std::vector<at::Tensor> by_place_;
  std::vector<fixtures::NamedTensor> masks_;
};

}  // namespace graphproof::workloads

// Dropout at the three sites of a layer, or at the one of a mamba layer. Inside a tensor parallel
// region every rank must draw its own mask (attention probabilities: each rank has other heads);
// outside it the activations are the same on all T ranks, so the mask must be too, save with
// sequence parallelism, where each rank has other tokens. That is Megatron-LM's rule; the two
// regions are those of fixtures::RngTracker.
//
// What is computed again in backward must draw its masks again. Megatron-LM sets the tracker's
// states back for that, which no capture allows. So each site of each layer that is recomputed has
// a region of its own, and a repeat of it that the backward draws from: backward visits layers in
// another order than forward, but each layer's microbatches in the same. Such a run draws other
// masks than one without recompute.
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

enum class DropoutSite { core_attention, attention, mlp, mamba };

/// Where in the model a mask is drawn. `again`: a second time, by recompute.
struct DropoutPlace {
  std::int64_t layer = 0;
  DropoutSite site = DropoutSite::attention;
  bool again = false;
};

class Dropout {
 public:
  /// Allocates one static probe per mask and adds the regions of recompute to `tracker`, which
  /// outlives this; so does `faults`.
  Dropout(const ModelConfig& config, const Layout& layout, fixtures::RngTracker& tracker,
          std::uint64_t seed, at::Device device, faults::FaultHooks& faults);

  /// Enqueues that the masks drawn from now on are those of `microbatch`.
  void begin(std::int64_t microbatch);

  /// While on, nothing is drawn and apply() returns its x: evaluation leaves masks and random
  /// numbers alone.
  void evaluating(bool on) { evaluating_ = on; }

  /// x [any] float. Returns x with each element zeroed with the configured probability and the
  /// others scaled by 1 / (1 - probability); x itself where the probability is 0. Copies the mask
  /// to the probe of its microbatch.
  at::Tensor apply(const at::Tensor& x, DropoutPlace place);
  /// Those two apart, for a site whose x comes in pieces: the mask of all of it, [sizes] uint8,
  /// undefined where the probability is 0; and x under a piece of that mask.
  at::Tensor mask(at::IntArrayRef sizes, const at::TensorOptions& options, DropoutPlace place);
  at::Tensor apply(const at::Tensor& x, const at::Tensor& mask) const;

  /// "mask:M.LAYER.SITE" uint8 out: 1 where kept; of the last step of each microbatch. "SITE_again"
  /// of what is recomputed. Addresses never change.
  const std::vector<fixtures::NamedTensor>& probes() const { return probes_; }

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
  std::vector<at::Tensor>
      by_place_;  // [M, shape of the mask] uint8; by index_of(); undefined where none is drawn
  std::vector<fixtures::NamedTensor> probes_;
};

}  // namespace graphproof::workloads

// A copy of the state that passes of a module change in addition to their results: losses,
// gradients, masks, ledgers, what casts to fp8 noted, counters, random numbers. An engine restores
// it after warm-up passes and rehearsals, so that they have no effect on training.
#pragma once

#include <vector>

#include "fixtures/tensors/torch.h"
#include "workloads/engines/capture/step_tensors.h"

namespace graphproof::engines {

/// The state of one step.
class SavedState {
 public:
  /// Enqueues the copies on the current stream. `step` outlives this object.
  explicit SavedState(workloads::TrainStep& step) : generators_(step.rng().generators()) {
    const at::NoGradGuard no_grad;
    tensors_.push_back({"losses", step.losses()});
    append(tensors_, step.gradients());
    append(tensors_, step.masks());
    append(tensors_, step.ledgers());
    append(tensors_, step.fp8_state());
    tensors_.push_back({"layer_counter", step.layer_counter()});
    if (step.recompute_counter().defined())
      tensors_.push_back({"recompute_counter", step.recompute_counter()});
    for (const NamedTensor& tensor : tensors_) copies_.push_back(tensor.tensor.clone());
    for (at::Generator& generator : generators_) states_.push_back(generator.get_state());
  }
  /// Enqueues copies back on the current stream. May be called several times; never inside a
  /// capture.
  void restore() {
    const at::NoGradGuard no_grad;
    for (std::size_t i = 0; i < tensors_.size(); ++i) tensors_[i].tensor.copy_(copies_[i]);
    for (std::size_t i = 0; i < generators_.size(); ++i) generators_[i].set_state(states_[i]);
  }

 private:
  std::vector<NamedTensor> tensors_;
  std::vector<at::Tensor> copies_;
  std::vector<at::Generator> generators_;
  std::vector<at::Tensor> states_;
};

}  // namespace graphproof::engines

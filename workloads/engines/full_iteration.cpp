#include "workloads/engines/full_iteration.h"

#include <stdexcept>

#include "fixtures/torch.h"
#include "workloads/engines/step_tensors.h"

namespace graphproof::engines {

FullIteration::FullIteration(const EngineConfig& config, capture::Device& device, c10::Stream stream,
                             workloads::TrainStep& step, Observer* observer)
    : config_(config),
      stream_(stream),
      step_(step),
      inputs_(device.stream_from_pool(), config.fault),
      graph_("training", [this] { step_.forward_backward(inputs_.batch()); }, config, device, step, observer),
      results_(step_outputs(step)) {
  if (step.rng().backend() == fixtures::RngBackend::plain)
    throw std::invalid_argument(
        "full_iteration: got rng_tracker plain; want graph_safe; why: rule B08, a capture can neither read nor set a "
        "generator's state, so the plain tracker can't change regions inside it; next: set rng_tracker to graph_safe");
}

void FullIteration::step(const workloads::Batch& batch, double learning_rate) {
  refuse_after_drop(dropped_);
  const c10::StreamGuard guard(stream_);
  inputs_.load(batch);
  step_.learning_rate(learning_rate);
  if (calls_ < config_.warmup_steps) {
    step_.forward_backward(inputs_.batch());
    ++counters_.eager;
  } else {
    if (!graph_.captured()) graph_.capture(calls_);
    graph_.replay(static_tensors(step_, inputs_.batch(), /*with_optimizer=*/false), overwritten_outputs(step_));
  }
  step_.optimizer_step();
  ++calls_;
  ++counters_.steps;
}

at::Tensor FullIteration::losses() { return kept_losses(step_, config_.fault); }

Counters FullIteration::counters() const {
  Counters counters = counters_;
  counters.replays = graph_.replays();
  counters.captures = graph_.captures();
  counters.graphs = counters.launches_per_step = graph_.captured() ? 1 : 0;
  return counters;
}

void FullIteration::drop_graphs() {
  graph_.drop();
  dropped_ = true;
}

void FullIteration::reset() {
  graph_.drop();
  calls_ = 0;
}

std::unique_ptr<Engine> make_full_iteration(const EngineConfig& config, capture::Device& device, c10::Stream stream,
                                            workloads::TrainStep& step, Observer* observer) {
  return std::make_unique<FullIteration>(config, device, stream, step, observer);
}

}  // namespace graphproof::engines

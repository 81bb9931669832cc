#include "workloads/engines/step/full_iteration.h"

#include <stdexcept>

#include "fixtures/tensors/torch.h"
#include "workloads/engines/capture/step_tensors.h"
#include "workloads/engines/modules/speed_floor.h"

namespace graphproof::engines {

FullIteration::FullIteration(const EngineConfig& config, capture::Device& device,
                             c10::Stream stream, workloads::TrainStep& step, Observer* observer)
    : config_(config),
      stream_(stream),
      step_(step),
      inputs_(device.stream_from_pool(), step.faults()),
      evaluation_inputs_(device.stream_from_pool(), step.faults()),
      graph_(
          "training", [this] { step_.forward_backward(inputs_.batch()); }, config, device, step,
          observer),
      evaluation_graph_(
          "validation", [this] { step_.evaluate(evaluation_inputs_.batch()); }, config, device,
          step, observer),
      optimizer_({config_, device, step, observer ? *observer : silent_}),
      stash_(step),
      results_(step_outputs(step)) {
  if (step.rng().backend() == fixtures::RngBackend::plain)
    throw std::invalid_argument(
        "full_iteration: got rng_tracker plain; want graph_safe; why: rule B08, a capture can "
        "neither read nor set a "
        "generator's state, so the plain tracker can't change regions inside it; next: set "
        "rng_tracker to graph_safe");
}

void FullIteration::step(const workloads::Batch& batch, double learning_rate) {
  refuse_after_drop(dropped_);
  const c10::StreamGuard guard(stream_);
  inputs_.load(batch);
  step_.learning_rate(learning_rate);
  stash_.begin_step();
  if (calls_ < config_.warmup_steps) {
    step_.forward_backward(inputs_.batch());
    ++counters_.eager;
  } else {
    if (!graph_.captured()) graph_.capture(calls_);
    graph_.replay(static_tensors(step_, inputs_.batch(), /*with_optimizer=*/false),
                  overwritten_outputs(step_));
    optimizer_.capture(graph_.pool());
  }
  stash_.finish_step(inputs_.batch(), [this] {
    graph_.drop();
    optimizer_.drop();
  });
  optimizer_.step();
  ++calls_;
  ++counters_.steps;
}

void FullIteration::floor_step(const workloads::Batch& batch, double learning_rate) {
  refuse_after_drop(dropped_);
  require_graphs_for_floor(config_.impl, graph_.captured());
  const c10::StreamGuard guard(stream_);
  inputs_.copy(batch);
  step_.learning_rate(learning_rate);
  graph_.launch();
  optimizer_.step();
}

void FullIteration::evaluate(const workloads::Batch& batch) {
  refuse_after_drop(dropped_);
  const c10::StreamGuard guard(stream_);
  evaluation_inputs_.load(batch);
  if (evaluations_++ < config_.warmup_steps) return step_.evaluate(evaluation_inputs_.batch());
  if (!evaluation_graph_.captured()) evaluation_graph_.capture(evaluations_ - 1);
  evaluation_graph_.replay(evaluation_tensors(step_, evaluation_inputs_.batch()),
                           {{"evaluation_losses", step_.evaluation_losses()}});
}

at::Tensor FullIteration::losses() { return step_.losses().clone(); }

Counters FullIteration::counters() const {
  Counters counters = counters_;
  counters.reruns = stash_.reruns();
  counters.replays = graph_.replays();
  counters.captures = graph_.captures();
  counters.graphs = counters.launches_per_step = graph_.captured() ? 1 : 0;
  optimizer_.add_to(counters);
  return counters;
}

void FullIteration::drop_graphs() {
  graph_.drop();
  evaluation_graph_.drop();
  optimizer_.drop();
  dropped_ = true;
}

void FullIteration::reset() {
  graph_.drop();
  optimizer_.drop();
  calls_ = 0;
}

std::unique_ptr<Engine> make_full_iteration(const EngineConfig& config, capture::Device& device,
                                            c10::Stream stream, workloads::TrainStep& step,
                                            Observer* observer) {
  return std::make_unique<FullIteration>(config, device, stream, step, observer);
}

}  // namespace graphproof::engines

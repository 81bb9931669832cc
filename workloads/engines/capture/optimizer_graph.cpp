#include "workloads/engines/capture/optimizer_graph.h"

#include "fixtures/device/nvtx.h"
#include "fixtures/tensors/torch.h"
#include "workloads/engines/capture/step_tensors.h"

namespace graphproof::engines {

void OptimizerGraph::step() {
  if (graph_) {
    const fixtures::NvtxRange range("graph optimizer");
    if (parts_.config.fault.is("M131") && graph_->replays() == 1) rebind_the_rate();
    // No outputs: it changes parameters and state, and what is poisoned must be written.
    parts_.observer.before_replay("optimizer", optimizer_tensors(parts_.step), {});
    graph_->replay();
    return parts_.observer.after_replay("optimizer", {});
  }
  parts_.step.optimizer_step();
  ++eager_steps_;
}

// M131 stands for a scheduler that assigns a new tensor to the optimizer's rate. The old one is
// kept, so that the graph reads old values and not freed memory: wrong in silence, as in the field.
void OptimizerGraph::rebind_the_rate() {
  const at::NoGradGuard no_grad;
  at::Tensor rate = parts_.step.learning_rate();
  old_rate_ = rate.variable_data();
  rate.set_data(rate.detach().clone());
}

void OptimizerGraph::capture(const capture::Pool& pool) {
  if (!parts_.config.optimizer_graph || graph_) return;
  ++captures_;
  graph_ = capture_graph(
      parts_, {"optimizer", pool, [this] { parts_.step.optimizer_step(); }, eager_steps_});
}

void OptimizerGraph::add_to(Counters& counters) const {
  counters.replays += earlier_replays_ + (graph_ ? graph_->replays() : 0);
  counters.captures += captures_;
  if (!graph_) return;
  ++counters.graphs;
  ++counters.launches_per_step;
}

void OptimizerGraph::drop() {
  if (!graph_) return;
  earlier_replays_ += graph_->replays();
  graph_->reset();
  graph_.reset();
}

}  // namespace graphproof::engines

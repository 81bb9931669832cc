#include "workloads/engines/capture/optimizer_graph.h"

#include "fixtures/device/nvtx.h"
#include "fixtures/tensors/torch.h"
#include "workloads/engines/capture/executables.h"
#include "workloads/engines/capture/step_tensors.h"

namespace graphproof::engines {

void OptimizerGraph::step() {
  if (graph_) {
    const fixtures::NvtxRange range("graph optimizer");
    // No outputs: the optimizer reads the parameters and state that it changes, so they must not be
    // poisoned.
    parts_.observer.before_replay("optimizer", optimizer_tensors(parts_.step), {});
    graph_->replay();
    return parts_.observer.after_replay("optimizer", {});
  }
  parts_.step.optimizer_step();
  ++eager_steps_;
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
  engines::drop(parts_.config, "optimizer", graph_);
}

}  // namespace graphproof::engines

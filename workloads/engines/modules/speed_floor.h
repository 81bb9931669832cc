// The speed floor of an engine with many graphs: the same graphs and the same eager device work,
// without the host work of the engine. Graphs that feed each other form a chain. The forwards of a
// chain are launched back to back, and so are its backwards. Autograd sees a chain as one node,
// because what lies between the chains is eager and needs autograd. The copies and additions that
// the engine enqueues around its graphs are enqueued here too. There are no checks, no observer, no
// pool order and no hooks of accumulators.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "workloads/engines/modules/module_graphs.h"

namespace graphproof::engines {

/// Replays the chains of one engine. Used by the engine's thread.
class SpeedFloor {
 public:
  /// Graphs in the order of their forwards. The only input of each is the only result of the
  /// previous one, and no other module consumes that result.
  using Chain = std::vector<ModuleGraphs*>;

  /// All graphs are captured and outlive this object.
  explicit SpeedFloor(const std::vector<Chain>& chains);

  /// Called in place of ModuleGraphs::replay(). `candidates` are the graphs of the called module,
  /// of which the one that is next in its chain is used.
  std::vector<at::Tensor> run(const workloads::ModuleCall& call,
                              std::span<const std::unique_ptr<ModuleGraphs>> candidates,
                              const std::vector<at::Tensor>& inputs);

 private:
  struct Links {
    Chain members;
    bool outstanding = false;
  };
  class ChainBackward;

  std::vector<at::Tensor> finish(Links& chain);

  std::vector<std::unique_ptr<Links>> chains_;
  Links* current_ = nullptr;          // the chain that the model is in the middle of
  std::size_t passed_ = 0;            // the members of it that the model has called
  torch::autograd::edge_list edges_;  // of the inputs of the current chain
};

/// Throws std::logic_error if floor_step() of `impl` is called before its graphs are captured.
void require_graphs_for_floor(const std::string& impl, bool captured);

}  // namespace graphproof::engines

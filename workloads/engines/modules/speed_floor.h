// What the speed of an engine of many graphs is measured against: the same graphs and the same
// eager device work, without what an engine adds. Graphs that feed each other are one chain: its
// forwards are launched back to back, later its backwards, and autograd knows it as one node,
// because what lies between the chains is eager and needs autograd. Whatever the engine copies or
// adds on the device around its graphs is issued here as well. No checks, no observer, no turns, no
// hooks of accumulators.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "workloads/engines/modules/module_graphs.h"

namespace graphproof::engines {

class SpeedFloor {
 public:
  /// In the order of the forwards; each has the only result of the one before it as its only input,
  /// and nobody else takes it.
  using Chain = std::vector<ModuleGraphs*>;

  /// All captured. They outlive this.
  explicit SpeedFloor(const std::vector<Chain>& chains);

  /// Takes the place of ModuleGraphs::replay() for whichever of `candidates`, graphs of the called
  /// module, comes next.
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
  Links* current_ = nullptr;  // whose members the model has still to pass
  std::size_t passed_ = 0;
  torch::autograd::edge_list edges_;  // of the current chain's inputs
};

/// Throws std::logic_error where floor_step() of `impl` comes before its graphs.
void require_graphs_for_floor(const std::string& impl, bool captured);

}  // namespace graphproof::engines

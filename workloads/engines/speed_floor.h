// What the speed of impl local is measured against: the same graphs and the same eager device work, without what an
// engine adds. Modules that feed each other are one chain: its forwards are launched back to back, later its backwards,
// and autograd knows it as one node, because what lies between the chains is eager and needs autograd. No checks, no
// observer, no turns.
#pragma once

#include <memory>
#include <vector>

#include "workloads/engines/module_graphs.h"

namespace graphproof::engines {

class SpeedFloor {
 public:
  /// `graphs` in order of capture, all captured. They outlive this.
  explicit SpeedFloor(const std::vector<ModuleGraphs*>& graphs);

  /// Takes the place of ModuleGraphs::replay() for whichever of `slots`, the graphs of the called module, comes next.
  std::vector<at::Tensor> run(const workloads::ModuleCall& call,
                              const std::vector<std::unique_ptr<ModuleGraphs>>& slots,
                              const std::vector<at::Tensor>& inputs);

 private:
  struct Chain {
    std::vector<ModuleGraphs*> members;
    bool outstanding = false;
  };
  class ChainBackward;

  std::vector<at::Tensor> finish(Chain& chain);

  std::vector<std::unique_ptr<Chain>> chains_;
  Chain* current_ = nullptr;  // whose members the model has still to pass
  std::size_t passed_ = 0;
  torch::autograd::edge_list edges_;  // of the current chain's inputs
};

}  // namespace graphproof::engines

#include "workloads/engines/modules/speed_floor.h"

#include <algorithm>
#include <stdexcept>

#include "fixtures/tensors/torch.h"

namespace graphproof::engines {

class SpeedFloor::ChainBackward final : public torch::autograd::Node {
 public:
  ChainBackward(Links& chain, torch::autograd::edge_list&& edges)
      : Node(std::move(edges)), chain_(chain) {}
  std::string name() const override { return "ChainBackward"; }

 private:
  torch::autograd::variable_list apply(torch::autograd::variable_list&& gradients) override {
    const at::NoGradGuard no_grad;
    const std::vector<at::Tensor>* arriving = &gradients;
    for (auto member = chain_.members.rbegin(); member != chain_.members.rend(); ++member) {
      (*member)->load_gradients(*arriving);
      (*member)->launch_backward();
      (*member)->add_weight_gradients();
      arriving = &(*member)->input_gradients();
    }
    chain_.outstanding = false;
    torch::autograd::variable_list handed;
    for (const at::Tensor& gradient : *arriving)
      handed.push_back(gradient.defined() ? gradient.variable_data() : at::Tensor());
    return handed;
  }
  Links& chain_;
};

SpeedFloor::SpeedFloor(const std::vector<Chain>& chains) {
  for (const Chain& members : chains)
    chains_.push_back(std::make_unique<Links>(Links{.members = members}));
}

std::vector<at::Tensor> SpeedFloor::run(const workloads::ModuleCall& call,
                                        std::span<const std::unique_ptr<ModuleGraphs>> candidates,
                                        const std::vector<at::Tensor>& inputs) {
  const auto called = [&](const ModuleGraphs* module) {
    return std::any_of(candidates.begin(), candidates.end(),
                       [&](const auto& graphs) { return graphs.get() == module; });
  };
  if (current_ && called(current_->members[passed_])) {
    ++passed_;
    return finish(*current_);
  }
  const auto chain = std::find_if(chains_.begin(), chains_.end(), [&](const auto& candidate) {
    return !candidate->outstanding && called(candidate->members.front());
  });
  if (chain == chains_.end())
    throw std::logic_error("speed floor: got " + place(call) +
                           " out of order; want the calls of the captured step; why: "
                           "only those have graphs; next: measure the schedule that was captured");
  current_ = chain->get();
  passed_ = 1;
  edges_.clear();
  for (const at::Tensor& input : inputs)
    edges_.push_back(torch::autograd::impl::gradient_edge(input));
  {
    const at::NoGradGuard no_grad;
    const std::vector<at::Tensor>* arriving = &inputs;
    for (ModuleGraphs* member : current_->members) {
      member->load(call, *arriving);
      member->launch_forward();
      arriving = &member->outputs();
    }
    current_->outstanding = current_->members.back()->has_backward();
  }
  return finish(*current_);
}

/// The outputs of the member that the model called last: plain memory inside the chain, results of
/// an autograd node at its end.
std::vector<at::Tensor> SpeedFloor::finish(Links& chain) {
  const ModuleGraphs& member = *chain.members[passed_ - 1];
  std::vector<at::Tensor> outputs;
  for (const at::Tensor& output : member.outputs()) outputs.push_back(output.variable_data());
  if (passed_ < chain.members.size()) return outputs;
  const std::shared_ptr<ChainBackward> node(new ChainBackward(chain, std::move(edges_)),
                                            torch::autograd::deleteNode);
  for (const std::size_t o : member.differentiable())
    torch::autograd::set_history(outputs[o], node);
  current_ = nullptr;
  return outputs;
}

void require_graphs_for_floor(const std::string& impl, bool captured) {
  if (captured) return;
  throw std::logic_error(
      impl +
      ": got floor_step() before any capture; want a step() first; why: the floor replays its "
      "graphs; next: run one step");
}

}  // namespace graphproof::engines

#include "workloads/engines/speed_floor.h"

#include <algorithm>
#include <stdexcept>

#include "fixtures/torch.h"

namespace graphproof::engines {

class SpeedFloor::ChainBackward final : public torch::autograd::Node {
 public:
  ChainBackward(Chain& chain, torch::autograd::edge_list&& edges) : Node(std::move(edges)), chain_(chain) {}
  std::string name() const override { return "ChainBackward"; }

 private:
  torch::autograd::variable_list apply(torch::autograd::variable_list&& gradients) override {
    const at::NoGradGuard no_grad;
    chain_.members.back()->load_gradients(gradients);
    for (auto member = chain_.members.rbegin(); member != chain_.members.rend(); ++member) (*member)->launch_backward();
    chain_.outstanding = false;
    torch::autograd::variable_list handed;
    for (const at::Tensor& gradient : chain_.members.front()->input_gradients())
      handed.push_back(gradient.defined() ? gradient.variable_data() : at::Tensor());
    return handed;
  }
  Chain& chain_;
};

SpeedFloor::SpeedFloor(const std::vector<ModuleGraphs*>& graphs) {
  for (ModuleGraphs* module : graphs) {
    const auto fed = std::find_if(chains_.begin(), chains_.end(), [&](const auto& chain) {
      return module->predecessor() && chain->members.back() == module->predecessor();
    });
    if (fed != chains_.end())
      (*fed)->members.push_back(module);
    else
      chains_.push_back(std::make_unique<Chain>(Chain{.members = {module}}));
  }
}

std::vector<at::Tensor> SpeedFloor::run(const workloads::ModuleCall& call,
                                        const std::vector<std::unique_ptr<ModuleGraphs>>& slots,
                                        const std::vector<at::Tensor>& inputs) {
  const auto called = [&](const ModuleGraphs* module) {
    return std::any_of(slots.begin(), slots.end(), [&](const auto& graphs) { return graphs.get() == module; });
  };
  if (current_ && called(current_->members[passed_])) {
    ++passed_;
    return finish(*current_);
  }
  const auto chain = std::find_if(chains_.begin(), chains_.end(), [&](const auto& candidate) {
    return !candidate->outstanding && called(candidate->members.front());
  });
  if (chain == chains_.end())
    throw std::logic_error("speed floor: got " + place(call) + " out of turn; want the calls of the recorded step; why: "
                           "only those have graphs; next: measure the schedule that was captured");
  current_ = chain->get();
  passed_ = 1;
  edges_.clear();
  for (const at::Tensor& input : inputs) edges_.push_back(torch::autograd::impl::gradient_edge(input));
  {
    const at::NoGradGuard no_grad;
    current_->members.front()->load(call, inputs);
    for (ModuleGraphs* member : current_->members) member->launch_forward();
    current_->outstanding = true;
  }
  return finish(*current_);
}

/// What the model gets from the member that it passed last: plain memory inside the chain, a node's results at its end.
std::vector<at::Tensor> SpeedFloor::finish(Chain& chain) {
  const ModuleGraphs& member = *chain.members[passed_ - 1];
  std::vector<at::Tensor> outputs;
  for (const at::Tensor& output : member.outputs()) outputs.push_back(output.variable_data());
  if (passed_ < chain.members.size()) return outputs;
  const std::shared_ptr<ChainBackward> node(new ChainBackward(chain, std::move(edges_)), torch::autograd::deleteNode);
  for (const std::size_t o : member.differentiable()) torch::autograd::set_history(outputs[o], node);
  current_ = nullptr;
  return outputs;
}

}  // namespace graphproof::engines

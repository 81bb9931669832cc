#include "workloads/engines/modules/module_graphs.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "fixtures/device/nvtx.h"
#include "fixtures/tensors/torch.h"
#include "workloads/engines/capture/executables.h"
#include "workloads/engines/modules/unowned.h"
#include "workloads/forward/shared_expert_stream.h"

namespace graphproof::engines {
namespace {

/// Compares addresses, because unowned tensors share memory but not the storage object.
bool overlaps_any(const at::Tensor& tensor, const std::vector<at::Tensor>& others) {
  return std::any_of(others.begin(), others.end(), [&](const at::Tensor& other) {
    return other.defined() && tensor.storage().data() == other.storage().data();
  });
}

std::vector<at::Tensor> gradients_of(const std::vector<at::Tensor>& outputs,
                                     const std::vector<at::Tensor>& inputs,
                                     const std::vector<at::Tensor>& parameters,
                                     const std::vector<at::Tensor>& gradients, bool retain_graph) {
  std::vector<at::Tensor> targets;
  for (const at::Tensor& input : inputs)
    if (input.requires_grad()) targets.push_back(input);
  for (const at::Tensor& parameter : parameters) targets.push_back(parameter);
  return torch::autograd::grad(outputs, targets, gradients, retain_graph, /*create_graph=*/false,
                               /*allow_unused=*/true);
}

bool has_hooks(const at::Tensor& parameter) {
  const auto accumulator = torch::autograd::impl::try_get_grad_accumulator(parameter);
  return accumulator && !accumulator->post_hooks().empty();
}

}  // namespace

class ModuleGraphs::ReplayBackward final : public torch::autograd::Node {
 public:
  ReplayBackward(ModuleGraphs& graphs, torch::autograd::edge_list&& edges)
      : Node(std::move(edges)), graphs_(graphs) {}
  std::string name() const override { return "ReplayBackward"; }

 private:
  torch::autograd::variable_list apply(torch::autograd::variable_list&& gradients) override {
    if (at::GradMode::is_enabled())
      throw std::logic_error(place(graphs_.recorded_.call) +
                             ": got a backward that is to be differentiated again; want one "
                             "without create_graph; why: a replayed graph leaves no history, so "
                             "the second gradient would be "
                             "silently zero; next: leave this module out of modules");
    return graphs_.replay_backward(std::move(gradients));
  }
  ModuleGraphs& graphs_;
};

ModuleGraphs::ModuleGraphs(const CaptureParts& parts, Recorded recorded, std::size_t slot,
                           CapturePolicy policy)
    : parts_(parts),
      recorded_(std::move(recorded)),
      slot_(slot),
      policy_(std::move(policy)),
      sources_(recorded_.arguments.size()),
      consumers_(recorded_.outputs) {
  const std::string name = parts.step.config().layer_name(recorded_.call.layer) + "." +
                           recorded_.name +
                           (slot == 0 ? std::string() : "." + std::to_string(slot));
  for (auto [captured, direction] :
       {std::pair{&forward_, ".forward"}, std::pair{&backward_, ".backward"},
        std::pair{&weight_gradients_, ".weight_gradients"}}) {
    captured->name = name + direction;
    captured->range = "graph " + captured->name;
  }
}

void ModuleGraphs::feed(std::size_t index, ModuleGraphs& producer, std::size_t output) {
  sources_.at(index) = {&producer, output};
  producer.consumers_.at(output).push_back({this, index});
}

ModuleGraphs* ModuleGraphs::predecessor() const {
  if (sources_.size() != 1 || consumers_.size() != 1 || !sources_[0].module) return nullptr;
  ModuleGraphs& producer = *sources_[0].module;
  const bool alone = producer.sources_.size() == 1 && producer.consumers_.size() == 1 &&
                     producer.consumers_[0].size() == 1;
  return alone ? &producer : nullptr;
}

// ---- capture

void ModuleGraphs::capture_forward(Place place, std::int64_t warmups, const WarmUp& warm_up) {
  forward_.place = place;
  if (place.order) forward_.position = place.order->captures++;
  parts_.step.faults().static_inputs(policy_.inputs, recorded_.arguments,
                                     /*from_outside=*/!sources_[0].module);
  warmups_ = warmups;
  forward_.graph =
      capture_graph(parts_, {forward_.name, place.pool, [this] { record_forward(); }, warmups_,
                             warm_up.run, warm_up.undo, &recorded_.call, policy_.inputs});
  if (has_backward()) return;
  policy_.results_stay = true;
  release();
  describe();
}

/// New leaves of autograd on the memory of the static inputs. New memory comes from the pool,
/// because this is called inside the capture.
std::vector<at::Tensor> ModuleGraphs::static_inputs() const {
  std::vector<at::Tensor> inputs;
  for (std::size_t i = 0; i < recorded_.arguments.size(); ++i) {
    const Source& source = sources_[i];
    const at::Tensor memory = i < policy_.inputs.size() ? policy_.inputs[i].variable_data()
                              : source.module
                                  ? source.module->outputs_[source.index].variable_data()
                                  : like(recorded_.arguments[i]);
    inputs.push_back(at::Tensor(memory).requires_grad_(recorded_.arguments[i].requires_grad));
  }
  return inputs;
}

void ModuleGraphs::warm_up_forward() {
  const c10::AutoGradMode with_gradients(true);
  warm_inputs_.clear();
  for (std::size_t i = 0; i < recorded_.arguments.size(); ++i) {
    const at::Tensor memory = i < policy_.inputs.size() ? policy_.inputs[i].variable_data()
                                                        : like(recorded_.arguments[i]).zero_();
    warm_inputs_.push_back(at::Tensor(memory).requires_grad_(recorded_.arguments[i].requires_grad));
  }
  warm_outputs_ = recorded_.body(warm_inputs_);
}

void ModuleGraphs::warm_up_backward() {
  std::vector<at::Tensor> outputs, gradients;
  for (const at::Tensor& output : std::exchange(warm_outputs_, {})) {
    if (!output.requires_grad()) continue;
    outputs.push_back(output);
    gradients.push_back(at::full_like(output, policy_.warm_up_gradient));
  }
  const std::vector<at::Tensor> inputs = std::exchange(warm_inputs_, {});
  const workloads::SilenceStreamMismatchWarning silence(parts_.step.config().shared_expert_overlap);
  if (!outputs.empty())
    note_connected(
        gradients_of(outputs, inputs, *recorded_.parameters, gradients, /*retain_graph=*/false));
}

/// Records which parameters get a gradient. `gradients`: those of the inputs that need one, then
/// those of the parameters.
void ModuleGraphs::note_connected(const std::vector<at::Tensor>& gradients) {
  const auto of_parameters =
      gradients.end() - static_cast<std::ptrdiff_t>(recorded_.parameters->size());
  if (!policy_.unused_inputs &&
      std::any_of(gradients.begin(), of_parameters, [](const auto& g) { return !g.defined(); }))
    throw std::invalid_argument(
        place(recorded_.call) +
        ": got an input that requires a gradient and gets none; want every such input used; why: "
        "the producer of the input would get no gradient; next: pass it without requiring a "
        "gradient");
  std::vector<bool> connected;
  for (auto gradient = of_parameters; gradient != gradients.end(); ++gradient)
    connected.push_back(gradient->defined());
  if (connected_.empty()) connected_ = connected;
  if (connected == connected_) return;
  throw std::logic_error(place(recorded_.call) + ": got a gradient for " +
                         std::to_string(std::count(connected.begin(), connected.end(), true)) +
                         " parameters; want the " +
                         std::to_string(std::count(connected_.begin(), connected_.end(), true)) +
                         " of the first pass; why: a graph cannot change its parameters; next: let "
                         "the module use the same parameters in every pass");
}

void ModuleGraphs::record_forward() {
  const c10::AutoGradMode with_gradients(true);
  inputs_ = static_inputs();
  captured_outputs_ = recorded_.body(inputs_);
  require_outputs(captured_outputs_);
  outputs_.clear();
  differentiable_.clear();
  for (std::size_t o = 0; o < captured_outputs_.size(); ++o) {
    outputs_.push_back(captured_outputs_[o].variable_data());
    if (captured_outputs_[o].requires_grad()) differentiable_.push_back(o);
  }
}

void ModuleGraphs::require_outputs(const std::vector<at::Tensor>& outputs) const {
  const auto requires_gradient = [](const auto& one) { return one.requires_grad; };
  const bool differentiable =
      std::any_of(outputs.begin(), outputs.end(),
                  [](const at::Tensor& output) { return output.requires_grad(); });
  const bool frozen =
      std::none_of(recorded_.arguments.begin(), recorded_.arguments.end(), requires_gradient) &&
      std::none_of(recorded_.parameters->begin(), recorded_.parameters->end(),
                   [](const at::Tensor& parameter) { return parameter.requires_grad(); });
  if (outputs.size() == recorded_.outputs && differentiable != frozen) return;
  throw std::logic_error(place(recorded_.call) + ": got " + std::to_string(outputs.size()) +
                         " outputs, " + (differentiable ? "some" : "none") +
                         " with a gradient; want " + std::to_string(recorded_.outputs) +
                         " as when it was recorded, " +
                         (frozen ? "none with a gradient; why: nothing in it is trained"
                                 : "at least one with a gradient; why: the backward graph starts "
                                   "from them") +
                         "; next: leave this module out of modules");
}

void ModuleGraphs::capture_backward(Place place) {
  backward_.place = place;
  if (place.order) backward_.position = place.order->captures++;
  grad_outputs_.assign(differentiable_.size(), {});
  if (policy_.output_gradient)
    for (std::size_t k = 0; k < differentiable_.size(); ++k)
      grad_outputs_[k] = policy_.output_gradient(differentiable_[k], outputs_[differentiable_[k]]);
  backward_.graph =
      capture_graph(parts_, {backward_.name, place.pool, [this] { record_backward(); }, warmups_});
  for (const at::Tensor& parameter : *recorded_.parameters)
    parameter_addresses_.push_back(parameter.const_data_ptr());
  hooked_.clear();
  const bool handed = policy_.weight_gradients != WeightGradients::added;
  const bool needs_a_parameter =
      std::none_of(recorded_.arguments.begin(), recorded_.arguments.end(),
                   [](const Argument& argument) { return argument.requires_grad; });
  const bool fused = parts_.step.config().grad_accumulation_fusion && !delays_weight_gradients();
  for (std::size_t p = 0; p < recorded_.parameters->size(); ++p)
    // A fused weight gradient is added in the graph, so only its hooks remain to be called. A
    // delayed weight gradient has no hooks either.
    if (handed ? connected_[p] || (fused && has_hooks((*recorded_.parameters)[p]))
               : needs_a_parameter || has_hooks((*recorded_.parameters)[p]))
      hooked_.push_back(p);
  release();
  describe();
}

void ModuleGraphs::capture_weight_gradients(Place place) {
  weight_gradients_.place = place;
  if (place.order) weight_gradients_.position = place.order->captures++;
  weight_gradients_.graph = capture_graph(
      parts_, {weight_gradients_.name, place.pool, recorded_.weight_gradients, warmups_});
  describe();
}

at::Tensor ModuleGraphs::gradient_buffer(std::size_t output) const {
  // If exactly one module consumes this output, the gradient that its backward returns is the one
  // that arrives here.
  const auto& consumers = consumers_[output];
  if (consumers.size() == 1) {
    const at::Tensor& handed = consumers[0].module->grad_inputs_.at(consumers[0].index);
    if (handed.defined() && handed.strides() == outputs_[output].strides() &&
        handed.scalar_type() == outputs_[output].scalar_type())
      return handed;
  }
  return at::empty_strided(outputs_[output].sizes(), outputs_[output].strides(),
                           outputs_[output].options());
}

void ModuleGraphs::record_backward() {
  std::vector<at::Tensor> outputs;
  for (std::size_t k = 0; k < differentiable_.size(); ++k) {
    outputs.push_back(captured_outputs_[differentiable_[k]]);
    if (!grad_outputs_[k].defined()) grad_outputs_[k] = gradient_buffer(differentiable_[k]);
  }
  // The graph of autograd is kept to the end of the capture, so that no result shares memory with
  // an activation. Results may therefore be poisoned before a replay, which proves that the replay
  // wrote them.
  const workloads::SilenceStreamMismatchWarning silence(parts_.step.config().shared_expert_overlap);
  const auto gradients =
      gradients_of(outputs, inputs_, *recorded_.parameters, grad_outputs_, /*retain_graph=*/true);
  note_connected(gradients);
  std::size_t next = 0;
  grad_inputs_.assign(inputs_.size(), {});
  for (std::size_t i = 0; i < inputs_.size(); ++i)
    if (inputs_[i].requires_grad()) grad_inputs_[i] = gradients[next++];
  accumulate({gradients.begin() + static_cast<std::ptrdiff_t>(next), gradients.end()});
}

void ModuleGraphs::accumulate(const std::vector<at::Tensor>& gradients) {
  const at::NoGradGuard no_grad;
  if (policy_.weight_gradients != WeightGradients::added) {
    wgrads_ = gradients;
    return;
  }
  for (std::size_t p = 0; p < gradients.size(); ++p) {
    if (!gradients[p].defined()) continue;  // the outputs don't depend on it
    at::Tensor sum = (*recorded_.parameters)[p].grad();
    sum.add_(gradients[p]);
  }
}

void ModuleGraphs::release() {
  captured_outputs_.clear();
  // The gradients whose memory was taken over from consumers are not needed any more.
  for (const std::size_t o : differentiable_)
    for (const Source& consumer : consumers_[o]) {
      at::Tensor& handed = consumer.module->grad_inputs_[consumer.index];
      if (handed.defined()) handed = unowned(handed);
      consumer.module->describe();
    }
  if (!policy_.results_stay)
    for (at::Tensor& output : outputs_) output = unowned(output);
  for (at::Tensor& gradient : grad_outputs_) gradient = unowned(gradient);
  // The engine owns the inputs that it provided.
  for (std::size_t i = policy_.inputs.size(); i < inputs_.size(); ++i)
    inputs_[i] = unowned(inputs_[i]);
  for (at::Tensor& tensor : inputs_) tensor = tensor.variable_data();
  if (policy_.weight_gradients == WeightGradients::cloned)
    for (at::Tensor& gradient : wgrads_)
      if (gradient.defined()) gradient = unowned(gradient);
  for (at::Tensor& gradient : grad_inputs_)
    if (gradient.defined()) gradient = gradient.variable_data();
}

void ModuleGraphs::release_input_gradients() {
  for (at::Tensor& gradient : grad_inputs_)
    if (gradient.defined()) gradient = unowned(gradient);
  describe();
}

void ModuleGraphs::describe() {
  forward_.statics.clear();
  forward_.outputs.clear();
  backward_.statics.clear();
  backward_.outputs.clear();
  weight_gradients_.statics.clear();
  const auto parameters = parts_.step.parameters(), gradients = parts_.step.gradients();
  for (std::size_t p = 0; p < parameters.size(); ++p) {
    const auto& mine = *recorded_.parameters;
    if (std::none_of(mine.begin(), mine.end(),
                     [&](const at::Tensor& own) { return own.is_same(parameters[p].tensor); }))
      continue;
    forward_.statics.push_back(parameters[p]);
    backward_.statics.push_back(parameters[p]);
    if (!parameters[p].tensor.requires_grad()) continue;
    if (policy_.weight_gradients == WeightGradients::added ||
        parts_.step.config().grad_accumulation_fusion)
      backward_.statics.push_back(gradients[p]);
    if (delays_weight_gradients()) weight_gradients_.statics.push_back(gradients[p]);
  }
  const auto list = [](const std::string& what, const std::vector<at::Tensor>& tensors,
                       std::vector<NamedTensor>& to) {
    for (std::size_t i = 0; i < tensors.size(); ++i)
      if (tensors[i].defined()) to.push_back({what + "." + std::to_string(i), tensors[i]});
  };
  list("input", inputs_, forward_.statics);
  list("output", outputs_, forward_.statics);
  list("grad_output", grad_outputs_, backward_.statics);
  list("grad_input", grad_inputs_, backward_.statics);
  const auto written = [](const std::string& what, const std::vector<at::Tensor>& tensors,
                          const std::vector<at::Tensor>& read, std::vector<NamedTensor>& to) {
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      const at::Tensor& tensor = tensors[i];
      if (tensor.defined() && tensor.is_contiguous() && !overlaps_any(tensor, read))
        to.push_back({what + "." + std::to_string(i), tensor});
    }
  };
  written("output", outputs_, inputs_, forward_.outputs);
  written("grad_input", grad_inputs_, grad_outputs_, backward_.outputs);
  if (policy_.weight_gradients != WeightGradients::added) {
    list("weight_gradient", wgrads_, backward_.statics);
    written("weight_gradient", wgrads_, grad_outputs_, backward_.outputs);
  }
}

// ---- replay

void ModuleGraphs::require_pool_order(const Captured& graph) {
  PoolOrder* order = graph.place.order;
  if (!order || !parts_.config.checks) return;
  const bool kept = parts_.step.faults().keeps_pool_order(graph.name, *order, graph.position);
  if (!order->allows(graph.position)) {
    if (kept)
      throw std::logic_error(
          "graph " + graph.name + ": got launch number " + std::to_string(graph.position) +
          " after " + std::to_string(order->last) + " with " + std::to_string(order->alive) +
          " backwards outstanding; want the order of capture; why: the graphs of a pool reuse each "
          "other's memory in that order; next: keep the order of the recorded step, or set pool to "
          "per_graph");
    ++order->out_of_order;
  }
  order->last = graph.position;
}

void ModuleGraphs::require_unchanged_parameters() const {
  if (!policy_.unchanged_parameters || !parts_.config.checks) return;
  for (std::size_t p = 0; p < parameter_addresses_.size(); ++p) {
    const at::Tensor& parameter = (*recorded_.parameters)[p];
    if (parameter.const_data_ptr() == parameter_addresses_[p] && parameter.requires_grad())
      continue;
    throw std::logic_error(place(recorded_.call) + ", parameter " + std::to_string(p) +
                           ": got one that was " +
                           (parameter.requires_grad() ? "moved" : "frozen") +
                           " after the capture; want the module as it was; "
                           "why: the graphs hold its address and make its gradient; next: change "
                           "modules before they are "
                           "graphed, and load weights by copying into them");
  }
}

void ModuleGraphs::load(const workloads::ModuleCall& call, const std::vector<at::Tensor>& inputs) {
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].const_data_ptr() == inputs_[i].const_data_ptr()) continue;
    if (sources_[i].module)
      throw std::invalid_argument(
          place(call) + ", input " + std::to_string(i) +
          ": got a tensor at another address; want the output of " +
          place(sources_[i].module->recorded_.call) +
          " where its graph leaves it; why: both graphs hold that address; "
          "next: pass the output itself, or leave one of the two out of modules");
    inputs_[i].copy_(inputs[i], /*non_blocking=*/true);
  }
}

std::vector<at::Tensor> ModuleGraphs::replay(const workloads::ModuleCall& call,
                                             const std::vector<at::Tensor>& inputs) {
  const fixtures::NvtxRange range(forward_.range);
  {
    const at::NoGradGuard no_grad;
    require_unchanged_parameters();
    require_pool_order(forward_);
    load(call, inputs);
    parts_.observer.before_replay(forward_.name, forward_.statics, forward_.outputs);
    forward_.graph->replay();
    parts_.observer.after_replay(forward_.name, forward_.outputs);
    if (forward_.place.order && has_backward()) ++forward_.place.order->alive;
    idle_ = !has_backward();
  }
  torch::autograd::edge_list edges;
  edges.reserve(inputs.size() + hooked_.size());
  for (const at::Tensor& input : inputs)
    edges.push_back(torch::autograd::impl::gradient_edge(input));
  for (const std::size_t p : hooked_)
    edges.push_back(torch::autograd::impl::gradient_edge((*recorded_.parameters)[p]));
  const std::shared_ptr<ReplayBackward> node(new ReplayBackward(*this, std::move(edges)),
                                             torch::autograd::deleteNode);
  std::vector<at::Tensor> outputs;
  outputs.reserve(outputs_.size());
  for (const at::Tensor& output : outputs_) outputs.push_back(output.variable_data());
  for (const std::size_t o : differentiable_) torch::autograd::set_history(outputs[o], node);
  return outputs;
}

void ModuleGraphs::load_gradients(const std::vector<at::Tensor>& gradients) {
  for (std::size_t k = 0; k < grad_outputs_.size(); ++k) {
    if (!gradients[k].defined()) {
      grad_outputs_[k].zero_();
    } else if (gradients[k].const_data_ptr() != grad_outputs_[k].const_data_ptr() ||
               gradients[k].strides() != grad_outputs_[k].strides()) {
      grad_outputs_[k].copy_(gradients[k], /*non_blocking=*/true);
    }
  }
}

void ModuleGraphs::add_weight_gradients() {
  std::size_t next = 0;
  for (const at::Tensor& gradient : handed_weight_gradients()) {
    const std::size_t p = hooked_[next++];
    if (gradient.defined()) (*recorded_.parameters)[p].grad().add_(gradient);
  }
}

std::vector<at::Tensor> ModuleGraphs::replay_backward(std::vector<at::Tensor>&& gradients) {
  const fixtures::NvtxRange range(backward_.range);
  const at::NoGradGuard no_grad;
  require_pool_order(backward_);
  load_gradients(gradients);
  parts_.observer.before_replay(backward_.name, backward_.statics, backward_.outputs);
  backward_.graph->replay();
  parts_.observer.after_replay(backward_.name, backward_.outputs);
  weight_gradients_pending_ = delays_weight_gradients();
  if (!weight_gradients_pending_) {
    if (backward_.place.order) --backward_.place.order->alive;
    idle_ = true;
  }
  std::vector<at::Tensor> handed;
  handed.reserve(grad_inputs_.size() + hooked_.size());
  for (const at::Tensor& gradient : grad_inputs_)
    handed.push_back(gradient.defined() ? gradient.variable_data() : at::Tensor());
  for (at::Tensor& gradient : handed_weight_gradients()) handed.push_back(std::move(gradient));
  return handed;
}

/// The gradients that replay() returns to autograd, one for each of hooked_; undefined if autograd
/// has nothing to add.
std::vector<at::Tensor> ModuleGraphs::handed_weight_gradients() const {
  std::vector<at::Tensor> handed(hooked_.size()), copied, copies;
  if (policy_.weight_gradients == WeightGradients::added) return handed;
  for (std::size_t h = 0; h < hooked_.size(); ++h) {
    const at::Tensor& gradient = wgrads_[hooked_[h]];
    if (!gradient.defined()) continue;
    if (policy_.weight_gradients == WeightGradients::aliased) {
      handed[h] = gradient.variable_data();
    } else {
      copied.push_back(gradient);
      copies.push_back(handed[h] = at::empty_like(gradient));
    }
  }
  if (!copies.empty())
    at::_foreach_copy_(copies, copied, /*non_blocking=*/true);  // one kernel for all, not one each
  return handed;
}

void ModuleGraphs::replay_weight_gradients() {
  if (!weight_gradients_pending_)
    throw std::logic_error(
        place(recorded_.call) +
        ": got a call for its weight gradients with none pending; want it once after each "
        "backward; why: the graph would add those of another backward again; next: call it after "
        "the backward");
  const at::NoGradGuard no_grad;
  weight_gradients_pending_ = false;
  launch_weight_gradients();
  if (weight_gradients_.place.order) --weight_gradients_.place.order->alive;
  idle_ = true;
}

void ModuleGraphs::launch_weight_gradients() {
  const fixtures::NvtxRange range(weight_gradients_.range);
  require_pool_order(weight_gradients_);
  parts_.observer.before_replay(weight_gradients_.name, weight_gradients_.statics,
                                weight_gradients_.outputs);
  weight_gradients_.graph->replay();
  parts_.observer.after_replay(weight_gradients_.name, weight_gradients_.outputs);
}

void ModuleGraphs::begin_step() {
  idle_ = true;
  weight_gradients_pending_ = false;
}

std::int64_t ModuleGraphs::replays() const {
  std::int64_t replays = 0;
  for (const Captured* captured : {&forward_, &backward_, &weight_gradients_})
    if (captured->graph) replays += captured->graph->replays();
  return replays;
}

void ModuleGraphs::reset() {
  for (Captured* captured : {&weight_gradients_, &backward_, &forward_})
    if (captured->graph) drop(parts_.config, captured->name, captured->graph);
}

}  // namespace graphproof::engines

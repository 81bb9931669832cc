#include "workloads/engines/modules/local.h"

#include <algorithm>
#include <span>
#include <stdexcept>

#include "fixtures/tensors/torch.h"
#include "workloads/engines/capture/scoped_flag.h"
#include "workloads/engines/capture/step_tensors.h"
#include "workloads/engines/modules/saved_state.h"

namespace graphproof::engines {
namespace {

[[noreturn]] void no_graphs_fit(const workloads::ModuleCall& call, std::size_t slots,
                                std::size_t outstanding, const std::string& differences) {
  throw std::invalid_argument(place(call) + ": got a call that none of its " +
                              std::to_string(slots) + " captured graphs can take (" +
                              std::to_string(outstanding) + " still waiting for a backward" +
                              (differences.empty() ? "" : "; " + differences) +
                              "); want inputs and outstanding microbatches as in the recorded "
                              "step; why: a graph fixes count, shape, strides, "
                              "type and device of its inputs; next: use another engine "
                              "for another shape or schedule");
}

}  // namespace

/// Reports to the engine when the backward of a recorded call begins. Passes gradients on
/// unchanged.
class Local::RecordBackward final : public torch::autograd::Node {
 public:
  RecordBackward(Local& engine, ModuleGraphs& graphs, torch::autograd::edge_list&& edges)
      : Node(std::move(edges)), engine_(engine), graphs_(graphs) {}
  std::string name() const override { return "RecordBackward"; }

 private:
  torch::autograd::variable_list apply(torch::autograd::variable_list&& gradients) override {
    engine_.recorded_backward(graphs_);
    return std::move(gradients);
  }
  Local& engine_;
  ModuleGraphs& graphs_;
};

Local::Local(const EngineConfig& config, capture::Device& device, c10::Stream stream,
             workloads::TrainStep& step, Observer* observer)
    : config_(config),
      device_(device),
      stream_(stream),
      step_(step),
      observer_(observer ? *observer : silent_),
      parts_{config_, device_, step_, observer_},
      optimizer_(parts_),
      captured_parts_(config_, step_.config()) {
  if (step.rng().backend() == fixtures::RngBackend::plain)
    throw std::invalid_argument(
        "local: got rng_tracker plain; want graph_safe; why: rule R154, a capture can neither read "
        "nor set a generator's "
        "state, so the plain tracker can't change regions inside it; next: set rng_tracker to "
        "graph_safe");
  step_.module_runner(this);
}

Local::~Local() { step_.module_runner(nullptr); }

template <class Visit>
void Local::for_each_graphs(Visit visit) const {
  for (const auto& layers : modules_)
    for (const Slots& slots : layers)
      for (const auto& graphs : slots) visit(*graphs);
}

// ---- a step

void Local::step(const workloads::Batch& batch, double learning_rate) {
  refuse_after_drop(dropped_);
  const c10::StreamGuard guard(stream_);
  step_.learning_rate(learning_rate);
  run_step([&] { step_.forward_backward(batch); });
  optimizer_.step();
  // After the recorded step, like the other graphs.
  if (created_)
    optimizer_.capture(config_.pool == PoolSharing::per_graph ? device_.make_pool()
                                                              : pools_.front()->pool);
}

void Local::run_step(const std::function<void()>& work) {
  refuse_after_drop(dropped_);
  const c10::StreamGuard guard(stream_);
  begin_step();
  ++counters_.steps;
  if (!created_) {
    try {
      work();
      create();
    } catch (...) {
      discard_recording();
      throw;
    }
    ++counters_.eager;
  } else {
    observer_.before_step(step_statics_, step_outputs_);
    work();
    observer_.after_step(step_outputs_);
  }
}

void Local::floor_step(const workloads::Batch& batch, double learning_rate) {
  refuse_after_drop(dropped_);
  require_graphs_for_floor(config_.impl, created_);
  const c10::StreamGuard guard(stream_);
  if (!floor_) floor_ = std::make_unique<SpeedFloor>(chains());
  const ScopedFlag at_floor(at_floor_);
  step_.learning_rate(learning_rate);
  step_.forward_backward(batch);
  optimizer_.step();
}

std::vector<SpeedFloor::Chain> Local::chains() const {
  std::vector<SpeedFloor::Chain> chains;
  for (ModuleGraphs* graphs : in_order_) {
    const auto fed =
        std::find_if(chains.begin(), chains.end(), [&](const SpeedFloor::Chain& chain) {
          return graphs->predecessor() && chain.back() == graphs->predecessor();
        });
    if (fed != chains.end())
      fed->push_back(graphs);
    else
      chains.push_back({graphs});
  }
  return chains;
}

void Local::evaluate(const workloads::Batch& batch) {
  refuse_after_drop(dropped_);
  const c10::StreamGuard guard(stream_);
  const ScopedFlag evaluating(evaluating_);
  step_.evaluate(batch);
}

void Local::begin_step() {
  first_microbatch_flag_.reset();
  for_each_graphs([](ModuleGraphs& graphs) { graphs.begin_step(); });
  for (const auto& pool : pools_) pool->begin_step();
}

Local::Slots& Local::slots(const workloads::ModuleCall& call) {
  auto& layers = modules_[static_cast<std::size_t>(call.kind)];
  if (layers.size() <= static_cast<std::size_t>(call.layer))
    layers.resize(static_cast<std::size_t>(call.layer) + 1);
  return layers[static_cast<std::size_t>(call.layer)];
}

std::vector<at::Tensor> Local::run(const workloads::ModuleCall& call,
                                   const std::vector<at::Tensor>& inputs,
                                   const std::vector<at::Tensor>& parameters,
                                   const workloads::ModuleBody& body) {
  if (creating_ || evaluating_ || !captured_parts_.has(call)) return body(inputs);
  if (!at::GradMode::is_enabled())
    throw std::invalid_argument(
        place(call) +
        ": got a call without gradients; want a training step; why: its graphs are "
        "those of training, with dropout and a backward; next: call evaluate() for evaluation");
  if (!created_) return record(call, inputs, parameters, body);
  if (const bool first = call.microbatch == 0; first_microbatch_flag_ != first) {
    step_.set_first_microbatch(first);
    first_microbatch_flag_ = first;
  }
  if (at_floor_) {
    const std::span<const std::unique_ptr<ModuleGraphs>> all = slots(call);
    return floor_->run(call,
                       graphs_for_each_microbatch()
                           ? all.subspan(static_cast<std::size_t>(call.microbatch), 1)
                           : all,
                       inputs);
  }
  return idle_graphs(call, inputs).replay(call, inputs);
}

ModuleGraphs& Local::idle_graphs(const workloads::ModuleCall& call,
                                 const std::vector<at::Tensor>& inputs) {
  const Slots& slots = this->slots(call);
  const auto own = static_cast<std::size_t>(call.microbatch);
  for (std::size_t i = 0; i < slots.size(); ++i)
    if (slots[i]->idle() && (!config_.checks || slots[i]->fits(inputs)) &&
        (!graphs_for_each_microbatch() || i == own))
      return *slots[i];
  std::size_t outstanding = 0;
  std::string differences;
  for (const auto& graphs : slots) {
    outstanding += graphs->idle() ? 0 : 1;
    if (!graphs->fits(inputs))
      differences += (differences.empty() ? "" : "; ") + graphs->mismatch(inputs);
  }
  no_graphs_fit(call, slots.size(), outstanding, differences);
}

bool Local::graphs_for_each_microbatch() const { return step_.layout().pp > 1; }

// ---- the recorded step

std::vector<at::Tensor> Local::record(const workloads::ModuleCall& call,
                                      const std::vector<at::Tensor>& inputs,
                                      const std::vector<at::Tensor>& parameters,
                                      const workloads::ModuleBody& body) {
  auto arguments = arguments_of(call, inputs, device_.torch_device());
  std::vector<at::Tensor> outputs = body(inputs);
  Slots& slots = this->slots(call);
  ModuleGraphs* graphs = nullptr;
  for (const auto& known : slots)
    if (known->idle() && known->fits(inputs) && !graphs_for_each_microbatch()) {
      graphs = known.get();
      break;
    }
  const bool first_call = graphs == nullptr;
  if (first_call) {
    slots.push_back(std::make_unique<ModuleGraphs>(
        parts_,
        ModuleGraphs::Recorded{call, std::string(workloads::name(call.kind)), std::move(arguments),
                               body, &parameters, outputs.size()},
        slots.size(), ModuleGraphs::CapturePolicy{}));
    graphs = slots.back().get();
    record_.push_back({graphs, false});
    for (std::size_t i = 0; i < inputs.size(); ++i)
      for (const Output& output : recorded_outputs_)
        if (output.tensor.lock().get() == inputs[i].unsafeGetTensorImpl())
          graphs->feed(i, *output.producer, output.index);
  }
  const bool has_backward = std::any_of(outputs.begin(), outputs.end(),
                                        [](const auto& output) { return output.requires_grad(); });
  graphs->idle(!has_backward);
  ++recorded_launches_;

  torch::autograd::edge_list edges;
  std::vector<std::size_t> differentiable;
  for (std::size_t o = 0; o < outputs.size(); ++o) {
    if (!outputs[o].requires_grad()) continue;
    differentiable.push_back(o);
    edges.push_back(torch::autograd::impl::gradient_edge(outputs[o]));
  }
  const std::shared_ptr<RecordBackward> node(new RecordBackward(*this, *graphs, std::move(edges)),
                                             torch::autograd::deleteNode);
  for (const std::size_t o : differentiable) {
    outputs[o] = outputs[o].variable_data();
    torch::autograd::set_history(outputs[o], node);
  }
  if (first_call)
    for (std::size_t o = 0; o < outputs.size(); ++o)
      recorded_outputs_.push_back(
          {decltype(Output::tensor)(outputs[o].getIntrusivePtr()), graphs, o});
  return outputs;
}

void Local::recorded_backward(ModuleGraphs& graphs) {
  graphs.idle(true);
  ++recorded_launches_;
  for (const Entry& entry : record_)
    if (entry.graphs == &graphs && entry.backward) return;
  record_.push_back({&graphs, true});
}

// ---- capture

void Local::create() {
  const ScopedFlag creating(creating_);
  SavedState state(step_);
  recorded_outputs_.clear();
  in_order_.clear();
  for (const Entry& entry : record_) {
    const ModuleGraphs::Place place = place_for(*entry.graphs);
    ++counters_.captures;
    if (entry.backward) {
      entry.graphs->capture_backward(place);
    } else {
      const auto passes = [&] {
        for (std::int64_t pass = 0; pass < config_.warmup_steps; ++pass) {
          entry.graphs->warm_up_forward();
          entry.graphs->warm_up_backward();
        }
      };
      entry.graphs->capture_forward(place, config_.warmup_steps,
                                    {passes, [&] { state.restore(); }});
      in_order_.push_back(entry.graphs);
    }
  }
  counters_.launches_per_step = recorded_launches_;
  record_.clear();
  recorded_launches_ = 0;
  step_statics_ = static_tensors(step_, {}, /*with_optimizer=*/true);
  step_outputs_ = overwritten_outputs(step_);
  created_ = true;
}

ModuleGraphs::Place Local::place_for(const ModuleGraphs& graphs) {
  if (config_.pool == PoolSharing::per_graph) return {device_.make_pool(), nullptr};
  const std::size_t index = config_.pool == PoolSharing::single ? 0 : graphs.slot();
  while (pools_.size() <= index) {
    pools_.push_back(std::make_unique<PoolOrder>());
    pools_.back()->pool = device_.make_pool();
  }
  return {pools_[index]->pool, pools_[index].get()};
}

/// After a failure in the recorded step: nothing that was recorded is used again.
void Local::discard_recording() {
  record_.clear();
  recorded_outputs_.clear();
  recorded_launches_ = 0;
  modules_ = {};
  pools_.clear();
}

// ---- results and counters

std::vector<NamedTensor> Local::outputs() { return engines::step_outputs(step_); }

at::Tensor Local::losses() { return step_.losses().clone(); }

Counters Local::counters() const {
  Counters counters = counters_;
  counters.replays = earlier_replays_;
  for_each_graphs([&](const ModuleGraphs& graphs) {
    counters.replays += graphs.replays();
    counters.graphs += graphs.graphs();
  });
  for (const auto& pool : pools_) counters.out_of_order += pool->out_of_order;
  optimizer_.add_to(counters);
  return counters;
}

void Local::drop_graphs() {
  dropped_ = true;
  device_.synchronize();
  for_each_graphs([&](ModuleGraphs& graphs) {
    earlier_replays_ += graphs.replays();
    graphs.reset();
  });
  optimizer_.drop();
  floor_.reset();
  modules_ = {};
  created_ = false;
}

std::unique_ptr<Engine> make_local(const EngineConfig& config, capture::Device& device,
                                   c10::Stream stream, workloads::TrainStep& step,
                                   Observer* observer) {
  return std::make_unique<Local>(config, device, stream, step, observer);
}

}  // namespace graphproof::engines

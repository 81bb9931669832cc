#include "suites/arms/taps.h"

#include <ATen/SequenceNumber.h>
#include <ATen/record_function.h>
#include <torch/csrc/autograd/graph_task.h>

#include <algorithm>
#include <atomic>
#include <stdexcept>
#include <tuple>

#include "fixtures/inspect/host_copies.h"
#include "fixtures/tensors/torch.h"

namespace graphproof::suites {
namespace {

// RecordFunction calls a plain function without a context, which finds the live taps here.
std::atomic<Taps*>& living() {
  static std::atomic<Taps*> taps{nullptr};
  return taps;
}

/// "layers.0.attention.qkv.weight" -> 0 and "attention"; "embedding.weight" -> -1 and "embedding";
/// "vision.layers.0.mlp.up.weight" -> -1 and "vision".
std::pair<std::int64_t, std::string> module_of(const std::string& parameter) {
  constexpr std::string_view kLayers = "layers.";
  if (!parameter.starts_with(kLayers)) return {-1, parameter.substr(0, parameter.find('.'))};
  const std::size_t dot = parameter.find('.', kLayers.size());
  const std::size_t end = parameter.find('.', dot + 1);
  return {std::stoll(parameter.substr(kLayers.size(), dot - kLayers.size())),
          parameter.substr(dot + 1, end - dot - 1)};
}

void each_tensor(const c10::IValue& value, const auto& visit) {
  if (value.isTensor() && value.toTensor().defined()) visit(value.toTensor());
  if (value.isTensorList())
    for (const at::Tensor& tensor : value.toTensorVector())
      if (tensor.defined()) visit(tensor);
}

bool adds_up(std::string_view op) { return op == "aten::add" || op == "aten::add_"; }

bool makes_no_value(std::string_view op) {
  return op.starts_with("aten::empty") || op.starts_with("aten::new_empty") ||
         op.starts_with("aten::resize") || op.starts_with("aten::set_");
}

/// The number of the node of autograd that this thread makes next.
std::pair<std::uint64_t, std::int64_t> next_node() {
  return {at::RecordFunction::currentThreadId(),
          static_cast<std::int64_t>(at::sequence_number::peek())};
}

/// "layers.0.attn.1.forward" -> "layers.0.attn.1": both graphs of one outstanding microbatch.
std::string module_graphs(const std::string& graph) { return graph.substr(0, graph.rfind('.')); }

}  // namespace

/// While it lives, work belongs to a part of the model.
class Taps::Inside {
 public:
  Inside(Taps& taps, const Region& region) : taps_(taps) {
    const std::lock_guard lock(taps_.mutex_);
    taps_.now_.work(taps_.step_.running());
    taps_.now_.parts_ran = true;
    taps_.regions_.push_back(region);
    taps_.nodes_from_here();
  }
  ~Inside() {
    const std::lock_guard lock(taps_.mutex_);
    taps_.regions_.pop_back();
    taps_.nodes_from_here();
  }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;

 private:
  Taps& taps_;
};

struct Taps::Callbacks {
  /// What is needed of an operator's arguments after the call.
  struct Arguments : at::ObserverContext {
    std::vector<const void*> storages;
    std::vector<at::Tensor> written;
  };

  static std::unique_ptr<at::ObserverContext> begin(const at::RecordFunction& function) {
    auto arguments = std::make_unique<Arguments>();
    Taps* taps = living();
    if (taps == nullptr) return arguments;
    if (function.scope() == at::RecordScope::BACKWARD_FUNCTION) {
      const std::lock_guard lock(taps->mutex_);
      const std::string_view node = function.name();
      taps->nodes_.push_back({.engine = node == "ReplayBackward" || node == "RecordBackward",
                              .around = taps->made_here()});
      taps->nodes_from_here();  // recomputation makes nodes, and the first may be of no operator
      return arguments;
    }
    const auto schema = function.operator_schema();
    const auto inputs = function.inputs();
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const bool written = schema && i < schema->arguments().size() &&
                           schema->arguments()[i].alias_info() &&
                           schema->arguments()[i].alias_info()->isWrite();
      each_tensor(inputs[i], [&](const at::Tensor& tensor) {
        if (tensor.device() != taps->device_.torch_device() || !tensor.has_storage()) return;
        arguments->storages.push_back(tensor.storage().data());
        if (written) arguments->written.push_back(tensor);
      });
    }
    return arguments;
  }

  static void end(const at::RecordFunction& function, at::ObserverContext* context) {
    Taps* taps = living();
    if (taps == nullptr || context == nullptr) return;
    if (function.scope() == at::RecordScope::BACKWARD_FUNCTION) {
      const std::lock_guard lock(taps->mutex_);
      if (taps->nodes_.empty()) return;
      if (const auto& around = taps->nodes_.back().around)
        taps->forward_[next_node()] = *around;
      else
        taps->forward_.erase(next_node());
      taps->nodes_.pop_back();
      return;
    }
    const std::string op = function.name();
    if (makes_no_value(op)) return;
    // The copies below are operators too. They are not observed, and autograd does not record them.
    const at::RecordFunctionGuard not_observed(/*is_enabled=*/false);
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    const auto& arguments = static_cast<const Arguments&>(*context);
    for (const at::Tensor& tensor : arguments.written)
      for (const at::Tensor& piece : taps->pieces(tensor))
        taps->keep(op, piece, {function.threadId(), function.seqNr()});
    for (const c10::IValue& output : function.outputs())
      each_tensor(output, [&](const at::Tensor& tensor) {
        if (tensor.device() != taps->device_.torch_device() || !tensor.has_storage()) return;
        const auto& old = arguments.storages;
        if (std::ranges::find(old, tensor.storage().data()) != old.end())
          return;  // a view, or a written tensor, which was recorded above
        taps->keep(op, tensor, {function.threadId(), function.seqNr()});
      });
  }
};

Taps::Step::Step(Taps& taps) {
  taps.begin_step();
  Taps* none = nullptr;
  if (!living().compare_exchange_strong(none, &taps))
    throw std::logic_error("taps: a step of another arm is running; next: end it first");
  handle_ = at::addGlobalCallback(
      at::RecordFunctionCallback(&Callbacks::begin, &Callbacks::end)
          .needsInputs(true)
          .needsOutputs(true)
          .scopes({at::RecordScope::FUNCTION, at::RecordScope::BACKWARD_FUNCTION}));
}

Taps::Step::~Step() {
  at::removeCallback(handle_);
  living() = nullptr;
}

Taps::Taps(capture::Device& device, workloads::TrainStep& step) : device_(device), step_(step) {
  const auto own = [&](const fixtures::NamedTensor& tensor) {
    if (!tensor.tensor.defined() || tensor.tensor.numel() == 0) return;
    const std::uint64_t begin = device_.address(tensor.tensor);
    owners_[begin] = {.end = begin + tensor.tensor.nbytes(), .name = tensor.name};
  };
  for (const auto& list :
       {step.parameters(), step.gradients(), step.optimizer_state(), step.masks(), step.ledgers()})
    for (const auto& tensor : list) own(tensor);
  own({"losses", step.losses()});
  own({"learning_rate", step.learning_rate()});
  own({"layer_counter", step.layer_counter()});
}

void Taps::surround(engines::Engine& engine) {
  next_ = engine.module_runner();
  step_.module_runner(this);
}

void Taps::reserve(const std::vector<Tap>& eager) {
  for (const Tap& tap : eager)
    room_[{tap.value.scalar_type(), tap.value.numel()}].push_back(
        at::empty({tap.value.numel()}, tap.value.options().device(device_.torch_device())));
}

void Taps::begin_step() {
  const std::lock_guard lock(mutex_);
  regions_.clear();
  nodes_.clear();
  seen_.clear();
  now_ = {};
  bytes_ = 0;
}

void Taps::Now::work(const std::optional<order::Work>& now) {
  if (running == now) return;
  running = now;
  parts_ran = false;
}

std::vector<at::Tensor> Taps::run(const workloads::ModuleCall& call,
                                  const std::vector<at::Tensor>& inputs,
                                  const std::vector<at::Tensor>& parameters,
                                  const workloads::ModuleBody& body) {
  const workloads::ModuleBody inside = [this, call, body](const std::vector<at::Tensor>& given) {
    const Inside part(*this, {.call = call, .weight_gradients = false, .engine = false});
    return body(given);
  };
  if (next_ == nullptr) return inside(inputs);
  const Inside part(*this, {.call = call, .weight_gradients = false, .engine = true});
  return next_->run(call, inputs, parameters, inside);
}

void Taps::run_weight_gradients(const workloads::ModuleCall& call,
                                const std::function<void()>& body) {
  const std::function<void()> inside = [this, call, body] {
    const Inside part(*this, {.call = call, .weight_gradients = true, .engine = false});
    body();
  };
  if (next_ == nullptr) return inside();
  const Inside part(*this, {.call = call, .weight_gradients = true, .engine = true});
  next_->run_weight_gradients(call, inside);
}

void Taps::before_capture(const std::string& graph, const std::vector<fixtures::NamedTensor>&) {
  const std::lock_guard lock(mutex_);
  capturing_ = graph;
  captured_[graph].clear();
  outside_capture_ = std::exchange(now_, {});
}

void Taps::after_capture(const engines::CaptureReport&, const std::vector<fixtures::NamedTensor>&) {
  const std::lock_guard lock(mutex_);
  capturing_.clear();
  now_ = std::move(outside_capture_);
}

void Taps::after_replay(const std::string& graph, const std::vector<fixtures::NamedTensor>&) {
  const at::RecordFunctionGuard not_observed(/*is_enabled=*/false);
  device_.synchronize(device_.current_stream());
  const std::lock_guard lock(mutex_);
  // The graphs of a module are launched once per microbatch. The forward's is that of the call, and
  // the backward's is the same.
  const bool module = graph.starts_with("layers.") || graph.starts_with("mtp.layers.") ||
                      graph.starts_with("vision.layers.");
  const std::string both = module_graphs(graph);
  if (module && !regions_.empty()) replayed_microbatch_[both] = regions_.back().call.microbatch;
  std::vector<fixtures::NamedTensor> buffers;
  for (const Captured& captured : captured_[graph])
    buffers.push_back({captured.place.what, captured.buffer});
  if (buffers.empty()) return;
  const std::vector<fixtures::NamedTensor> values = fixtures::on_host(buffers);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const Captured& captured = captured_[graph][i];
    Tap tap{captured.place, captured.op, values[i].tensor};
    if (module && tap.place.direction != "") tap.place.microbatch = replayed_microbatch_[both];
    add(std::move(tap));
  }
}

const Taps::Owner* Taps::owner(const at::Tensor& tensor) const {
  const std::uint64_t address = device_.address(tensor);
  const auto after = owners_.upper_bound(address);
  if (after == owners_.begin()) return nullptr;
  const Owner& candidate = std::prev(after)->second;
  return address < candidate.end ? &candidate : nullptr;
}

/// Splits a written tensor into the step's tensors, because clearing, reducing and gathering write
/// many of them at once.
std::vector<at::Tensor> Taps::pieces(const at::Tensor& written) const {
  const std::uint64_t begin = device_.address(written), end = begin + written.nbytes();
  auto owned = owners_.lower_bound(begin);
  if (!written.is_contiguous() || owned == owners_.end() || owned->first != begin ||
      owned->second.end >= end)
    return {written};
  std::vector<at::Tensor> pieces;
  const auto element = [&](std::uint64_t address) {
    return static_cast<std::int64_t>((address - begin) / written.itemsize());
  };
  for (; owned != owners_.end() && owned->first < end; ++owned)
    pieces.push_back(written.view(-1).slice(0, element(owned->first),
                                            element(std::min(owned->second.end, end))));
  return pieces;
}

void Taps::keep(const std::string& op, const at::Tensor& result, NodeNumber node) {
  if (result.numel() == 0 || !result.is_non_overlapping_and_dense()) return;
  const bool recorded = device_.capturing(device_.current_stream());
  const std::lock_guard lock(mutex_);
  if (recorded == capturing_.empty()) return;  // not part of the capture in progress
  const Owner* written = owner(result);
  if (written && (written->name == "layer_counter" || written->name.starts_with("recompute:") ||
                  written->name.starts_with("experts:") || written->name == "schedule"))
    return;  // the step's own ledgers
  if (!written && engine_at_work(recorded)) return;
  if (!written && between_nodes() && !adds_up(op))
    return;  // a hook, which engines may call at another place
  TapPlace place = place_of(written, op, node);
  // A tensor that is written again keeps its ordinal, because the last write counts.
  if (!written) place.ordinal = now_.ordinals[place]++;
  if (!recorded) {
    add({place, op, fixtures::on_host({{op, result}}).front().tensor});
    return;
  }
  auto& room = room_[{result.scalar_type(), result.numel()}];
  if (room.empty()) {
    truncated_ = true;
    return;
  }
  at::Tensor buffer = room.back().view(result.sizes());
  room.pop_back();
  buffer.copy_(result, /*non_blocking=*/true);
  captured_[capturing_].push_back({std::move(place), op, std::move(buffer)});
}

/// Whether the engine works: outside the step, between the call of a part and the part itself, or
/// in the node that the engine has put in place of a part.
bool Taps::engine_at_work(bool recorded) const {
  const bool backward = torch::autograd::get_current_graph_task_id() != -1;
  if (!backward && regions_.empty() && step_.inside() == workloads::TrainStep::Inside::neither)
    return true;
  if (recorded || next_ == nullptr) return false;
  if (!backward) return !regions_.empty() && regions_.back().engine;
  return !nodes_.empty() && nodes_.back().engine;
}

bool Taps::between_nodes() const {
  return nodes_.empty() && torch::autograd::get_current_graph_task_id() != -1;
}

/// Notes the present place for nodes that this thread makes from now on. Recomputation and fused
/// linear layers make nodes without an operator, whose place is found by their number.
void Taps::nodes_from_here() { forward_[next_node()] = here(); }

std::optional<TapPlace> Taps::made_here() const {
  const NodeNumber next = next_node();
  const auto after = forward_.upper_bound(next);
  if (after == forward_.begin() || std::prev(after)->first.first != next.first) return std::nullopt;
  return std::prev(after)->second;
}

/// The present place by the running part and microbatch, without an operator.
TapPlace Taps::here() {
  TapPlace place;
  const bool backward = torch::autograd::get_current_graph_task_id() != -1;
  now_.work(step_.running());
  if (now_.running) place.microbatch = now_.running->microbatch;
  if (!regions_.empty()) {  // recomputation runs parts too
    const Region& region = regions_.back();
    if (!backward) place.microbatch = region.call.microbatch;
    place.layer = region.call.layer;
    place.module = workloads::name(region.call.kind);
    place.direction = backward || region.weight_gradients ? "backward" : "forward";
  } else if (backward) {
    // The hooks of a node run before the node. Accumulators have no number.
    const auto node = torch::autograd::get_current_node();
    const auto after = node ? forward_.upper_bound({node->thread_id(),
                                                    static_cast<std::int64_t>(node->sequence_nr())})
                            : forward_.begin();
    if (after != forward_.begin() && std::prev(after)->first.first == node->thread_id())
      now_.last_backward = std::prev(after)->second;
    place.layer = now_.last_backward.layer;
    place.module = now_.last_backward.module;
    place.direction = "backward";
  } else if (now_.running) {
    place.module = now_.parts_ran ? "output" : "embedding";
    place.direction = now_.running->forward ? "forward" : "backward";
  } else {
    place.module =
        step_.inside() == workloads::TrainStep::Inside::passes ? "reduction" : "optimizer";
  }
  return place;
}

TapPlace Taps::place_of(const Owner* written, const std::string& op, NodeNumber node) {
  TapPlace place = here();
  const bool backward = torch::autograd::get_current_graph_task_id() != -1;
  // Autograd adds gradients, in place or into a new tensor.
  const bool sum = between_nodes() && adds_up(op);
  // A transfer between stages: the activations of the next forward or the gradient of the next
  // backward.
  if (op == "graphproof::receive_into") place.module = "transfer";
  if (node.second >= 0) forward_[node] = place;  // recomputation makes nodes in a backward
  // They may have their own graph, so they are counted separately from the results of the backward.
  const bool delayed = !backward && !regions_.empty() && regions_.back().weight_gradients;
  place.what = written   ? written->name
               : sum     ? "sum of gradients"
               : delayed ? "delayed weight gradients"
                         : op;
  if (!written) return place;
  const auto colon = written->name.find(':');
  if (written->name.starts_with("grad:")) {
    std::tie(place.layer, place.module) = module_of(written->name.substr(colon + 1));
    // A gradient is cleared before the first microbatch, added to in each, and reduced after the
    // last.
    const bool added = backward || delayed || capturing_.ends_with(".backward");
    if (!added) place.microbatch = -1;
    place.direction = added ? "backward" : "";
  } else if (written->name.starts_with("param:") || written->name.starts_with("state:") ||
             written->name == "learning_rate") {
    place = {.microbatch = -1,
             .layer = -1,
             .module = "optimizer",
             .direction = "",
             .what = written->name};
  }
  return place;
}

void Taps::add(Tap tap) {
  bytes_ += static_cast<std::int64_t>(tap.value.nbytes());
  if (bytes_ > kMostBytes) {
    truncated_ = true;
    return;
  }
  seen_.push_back(std::move(tap));
}

}  // namespace graphproof::suites

#include "workloads/engines/modules/ahead_of_time.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>
#include <sstream>
#include <stdexcept>
#include <utility>

#include "fixtures/tensors/torch.h"
#include "workloads/engines/capture/scoped_flag.h"
#include "workloads/engines/capture/step_tensors.h"
#include "workloads/engines/modules/saved_state.h"

namespace graphproof::engines {
namespace {

/// Calls `forward` and `backward` for each graph in the order, and `weight_gradients` for each
/// graph that delays some. `lowest`: no later graph of its entry, in the order of the backward,
/// has a backward.
template <class Chunk, class Forward, class Backward, class WeightGradients>
void walk(const std::vector<Chunk>& chunks, const std::vector<double>& order,
          const Forward& forward, const Backward& backward,
          const WeightGradients& weight_gradients) {
  std::vector<std::size_t> forwards(chunks.size()), backwards(chunks.size()),
      delayed(chunks.size());
  for (const double entry : order) {
    const auto c = static_cast<std::size_t>(std::abs(entry)) - 1;
    const Chunk& chunk = chunks.at(c);
    if (entry != std::trunc(entry)) {
      for (const auto& callable : chunk)
        if (ModuleGraphs& graphs = *callable->graphs.at(delayed[c]);
            graphs.delays_weight_gradients())
          weight_gradients(graphs);
      ++delayed[c];
    } else if (entry > 0) {
      for (const auto& callable : chunk) forward(*callable->graphs.at(forwards[c]));
      ++forwards[c];
    } else {
      for (auto callable = chunk.rbegin(); callable != chunk.rend(); ++callable)
        backward(*(*callable)->graphs.at(backwards[c]),
                 /*lowest=*/std::none_of(std::next(callable), chunk.rend(), [&](const auto& lower) {
                   return lower->graphs.at(backwards[c])->has_backward();
                 }));
      ++backwards[c];
    }
  }
}

std::string key_of(std::size_t index, const at::Tensor& output) {
  std::ostringstream key;
  key << index << " " << output.scalar_type() << output.sizes() << output.strides();
  return key.str();
}

/// A function that calls all bodies in order; empty if there are none.
template <class Bodies>
std::function<void()> all_of(const Bodies& bodies) {
  if (bodies.empty()) return {};
  return [bodies] {
    for (const auto& [kind, body] : bodies) body();
  };
}

[[noreturn]] void nothing_to_capture(const std::string& impl,
                                     const std::vector<workloads::ModuleKind>& modules) {
  std::string wanted;
  for (const workloads::ModuleKind kind : modules)
    wanted += (wanted.empty() ? "" : ", ") + std::string(workloads::name(kind));
  throw std::invalid_argument(
      impl + ": got a model without " + (wanted.empty() ? "layers" : wanted) +
      "; want at least one such part; why: nothing would be captured although "
      "the case requests captures; "
      "next: choose modules that the model has");
}

}  // namespace

AheadOfTime::AheadOfTime(const EngineConfig& config, capture::Device& device, c10::Stream stream,
                         workloads::TrainStep& step, Observer* observer, CapturedSchedule schedule,
                         CapturePolicy policy)
    : config_(config),
      device_(device),
      stream_(stream),
      step_(step),
      observer_(observer ? *observer : silent_),
      parts_{config_, device_, step_, observer_},
      optimizer_(parts_),
      schedule_(std::move(schedule)),
      policy_(std::move(policy)),
      captured_parts_(config_, step_.config()) {
  if (step.rng().backend() == fixtures::RngBackend::plain)
    throw std::invalid_argument(config_.impl +
                                ": got rng_tracker plain; want graph_safe; why: rule B08, a "
                                "capture can neither read nor set a "
                                "generator's state, so the plain tracker can't change regions "
                                "inside it; next: set rng_tracker to graph_safe");
  if (config_.pool != PoolSharing::single)
    throw std::invalid_argument(
        config_.impl +
        ": got pools of their own for its graphs; want one; why: all graphs of one "
        "call of make_graphed_callables share one; next: set pool to single");
  step_.module_runner(this);
}

AheadOfTime::~AheadOfTime() { step_.module_runner(nullptr); }

// ---- a step

void AheadOfTime::step(const workloads::Batch& batch, double learning_rate) {
  refuse_after_drop(dropped_);
  const c10::StreamGuard guard(stream_);
  step_.learning_rate(learning_rate);
  run_step([&] { step_.forward_backward(batch); });
  if (captured_) optimizer_.capture(pool_.pool);
  optimizer_.step();
}

void AheadOfTime::run_step(const std::function<void()>& work) {
  refuse_after_drop(dropped_);
  const c10::StreamGuard guard(stream_);
  if (!captured_ && counters_.eager >= config_.warmup_steps) capture(work);
  pool_.begin_step();
  for (const auto& [layer, callables] : layers_)
    for (const auto& callable : callables) {
      callable->chain->abandon();
      for (const auto& graphs : callable->graphs) graphs->begin_step();
    }
  ++counters_.steps;
  if (!captured_) {
    work();
    ++counters_.eager;
    return;
  }
  observer_.before_step(step_statics_, step_outputs_);
  work();
  for (const auto& [layer, callables] : layers_)
    for (const auto& callable : callables) callable->chain->require_finished();
  observer_.after_step(step_outputs_);
}

void AheadOfTime::floor_step(const workloads::Batch& batch, double learning_rate) {
  refuse_after_drop(dropped_);
  require_graphs_for_floor(config_.impl, captured_);
  const c10::StreamGuard guard(stream_);
  if (!floor_) floor_ = std::make_unique<SpeedFloor>(floor_chains());
  const ScopedFlag at_floor(at_floor_);
  step_.learning_rate(learning_rate);
  step_.forward_backward(batch);
  optimizer_.step();
}

std::vector<SpeedFloor::Chain> AheadOfTime::floor_chains() const {
  std::vector<SpeedFloor::Chain> chains;
  for (const Chunk& chunk : chunks())
    for (std::size_t m = 0; m < chunk.front()->graphs.size(); ++m)
      for (std::size_t c = 0; c < chunk.size(); ++c) {
        if (c == 0 || chunk[c]->predecessor != chunk[c - 1]) chains.emplace_back();
        chains.back().push_back(chunk[c]->graphs[m].get());
      }
  return chains;
}

void AheadOfTime::evaluate(const workloads::Batch& batch) {
  refuse_after_drop(dropped_);
  const c10::StreamGuard guard(stream_);
  step_.evaluate(batch);
}

std::vector<at::Tensor> AheadOfTime::run(const workloads::ModuleCall& call,
                                         const std::vector<at::Tensor>& inputs,
                                         const std::vector<at::Tensor>& parameters,
                                         const workloads::ModuleBody& body) {
  if (capturing_ || !captured_parts_.has(call) || !at::GradMode::is_enabled()) return body(inputs);
  if (!captured_) return note(call, inputs, parameters, body);
  const Part part = part_of(call);
  if (!part.callable)
    throw std::invalid_argument(
        place(call) +
        ": got a call without graphs; want the calls of the steps before the capture; "
        "why: graphs are made ahead of time; next: call the same parts in every step");
  PartChain& chain = *part.callable->chain;
  if (part.index > 0) return chain.next(call, part.index, inputs);
  chain.require_finished();
  const auto& captured = part.callable->graphs;
  const std::size_t own = static_cast<std::size_t>(call.microbatch) % captured.size();
  step_.set_first_microbatch(call.microbatch == 0);
  if (at_floor_) return chain.begin(floor_->run(call, std::span(captured).subspan(own, 1), inputs));
  ModuleGraphs& graphs = *captured[own];
  if (!graphs.idle() || (config_.checks && !graphs.fits(inputs)))
    throw std::invalid_argument(
        place(call) + ": got a call that graph " + std::to_string(graphs.slot()) + " of " +
        std::to_string(captured.size()) + " cannot take (" +
        (graphs.idle() ? graphs.mismatch(inputs)
                       : "its last forward still waits for the backward") +
        "); want the captured inputs in the captured schedule; why: a graph fixes count, shape, "
        "strides, type and device of its "
        "inputs; next: use another engine for another shape or schedule");
  return chain.begin(graphs.replay(call, inputs));
}

/// The delayed weight gradients of all parts of a chain are in one graph. The call of the first
/// part that delays some replays it.
void AheadOfTime::run_weight_gradients(const workloads::ModuleCall& call,
                                       const std::function<void()>& body) {
  if (capturing_ || !captured_parts_.has(call)) return body();
  const Part part = part_of(call);
  if (!part.callable)
    throw std::logic_error(
        place(call) +
        ": got a call for weight gradients of a part that never ran; want it after the part's "
        "backward; why: they would be another part's; next: name the part as it was called");
  auto& delayed = part.callable->weight_gradients;
  if (!captured_) {
    const bool known = std::any_of(delayed.begin(), delayed.end(),
                                   [&](const auto& noted) { return noted.first == call.kind; });
    if (!known) delayed.emplace_back(call.kind, body);
    return body();
  }
  if (delayed.empty() || delayed.front().first != call.kind) return;
  const auto& captured = part.callable->graphs;
  captured[static_cast<std::size_t>(call.microbatch) % captured.size()]->replay_weight_gradients();
}

AheadOfTime::Part AheadOfTime::part_of(const workloads::ModuleCall& call) const {
  if (const auto layer = layers_.find(call.layer); layer != layers_.end())
    for (const auto& callable : layer->second)
      if (const std::ptrdiff_t index = callable->chain->part_of(call); index >= 0)
        return {callable.get(), static_cast<std::size_t>(index)};
  return {};
}

/// Records a call in an eager step. Only the first call of each part is used.
std::vector<at::Tensor> AheadOfTime::note(const workloads::ModuleCall& call,
                                          const std::vector<at::Tensor>& inputs,
                                          const std::vector<at::Tensor>& parameters,
                                          const workloads::ModuleBody& body) {
  if (part_of(call).callable) return body(inputs);
  auto arguments = arguments_of(call, inputs, device_.torch_device());
  auto& callables = layers_[call.layer];
  if (callables.empty() || !policy_.one_graph_a_layer ||
      !callables.back()->chain->append(call, inputs, parameters, body)) {
    auto callable = std::make_unique<Callable>();
    callable->chain = std::make_unique<PartChain>(call, std::move(arguments), parameters, body);
    for (const auto& [layer, earlier] : layers_)
      for (const auto& other : earlier)
        if (other->chain->feeds(inputs)) callable->predecessor = other.get();
    callables.push_back(std::move(callable));
  }
  std::vector<at::Tensor> outputs = body(inputs);
  callables.back()->chain->ran(outputs);
  return outputs;
}

// ---- capture

void AheadOfTime::capture(const std::function<void()>& work) {
  SavedState state(step_);
  if (layers_.empty()) {
    work();
    state.restore();
  }
  const std::vector<Chunk> chunks = this->chunks();
  const std::vector<double> order = this->order();
  const std::int64_t microbatches = step_.config().microbatches;
  const std::int64_t passes =
      policy_.warm_up_passes(counters_.eager, microbatches, schedule_.stage.microbatches);
  const std::int64_t runs = counters_.eager * microbatches + passes;
  const ScopedFlag capturing(capturing_);
  try {
    pool_ = {};
    pool_.pool = device_.make_pool();
    make_graphs(chunks, order);
    ModuleGraphs::WarmUp warm_up_all{[&] { warm_up(chunks, order, passes); },
                                     [&] { state.restore(); }};
    ModuleGraphs* above = nullptr;
    // The lowest layer of the last backward entry, whose input gradient is sent to another stage.
    ModuleGraphs* sent = nullptr;
    walk(
        chunks, order,
        [&](ModuleGraphs& graphs) {
          ++counters_.captures;
          graphs.capture_forward({pool_.pool, &pool_}, runs, std::exchange(warm_up_all, {}));
        },
        [&](ModuleGraphs& graphs, bool lowest) {
          if (!graphs.has_backward()) return;
          ++counters_.captures;
          graphs.capture_backward({pool_.pool, &pool_});
          if (!policy_.shared_memory) return;
          if (above) above->release_input_gradients();
          above = lowest ? nullptr : &graphs;
          if (!lowest) return;
          if (sent) sent->release_input_gradients();
          sent = &graphs;
        },
        [&](ModuleGraphs& graphs) {
          ++counters_.captures;
          graphs.capture_weight_gradients({pool_.pool, &pool_});
        });
  } catch (...) {
    discard_graphs();
    throw;
  }
  counters_.launches_per_step = 0;
  for (const Chunk& chunk : chunks)
    for (const Callable* callable : chunk)
      counters_.launches_per_step += callable->graphs.front()->graphs() * microbatches;
  step_statics_ = static_tensors(step_, {}, /*with_optimizer=*/true);
  step_outputs_ = overwritten_outputs(step_);
  captured_ = true;
}

std::vector<AheadOfTime::Chunk> AheadOfTime::chunks() const {
  std::vector<Chunk> chunks;
  std::size_t scheduled = 0;
  for (const std::vector<std::int64_t>& layers : schedule_.layers) {
    if (!schedule_.by_layer) chunks.emplace_back();
    for (const std::int64_t layer : layers) {
      if (schedule_.by_layer) chunks.emplace_back();
      const auto found = layers_.find(layer);
      if (found == layers_.end()) continue;
      ++scheduled;
      for (const auto& callable : found->second) chunks.back().push_back(callable.get());
    }
  }
  if (scheduled == 0) nothing_to_capture(config_.impl, config_.modules);
  if (scheduled != layers_.size())
    throw std::logic_error(config_.impl + ": got calls of " + std::to_string(layers_.size()) +
                           " layers; want the " + std::to_string(scheduled) +
                           " of the schedule; why: a layer without a place in the order has no "
                           "graphs; next: give the schedule every layer of this rank");
  return chunks;
}

/// The order of the schedule; its entries number the chunks of chunks().
std::vector<double> AheadOfTime::order() const {
  const std::vector<double> of_chunks = order::chunk_order(schedule_.stage);
  if (!schedule_.by_layer) return of_chunks;
  std::vector<std::int64_t> layers;
  for (const auto& chunk : schedule_.layers)
    layers.push_back(static_cast<std::int64_t>(chunk.size()));
  return order::layer_order(of_chunks, layers, schedule_.weight_gradients).entries;
}

/// Makes the graphs' memory outside the pool. Nothing is captured here.
void AheadOfTime::make_graphs(const std::vector<Chunk>& chunks, const std::vector<double>& order) {
  const std::int64_t microbatches = schedule_.stage.microbatches;
  std::vector<std::int64_t> layers_of_chunk;
  std::vector<std::string> signatures;
  for (const Chunk& chunk : chunks) {
    layers_of_chunk.push_back(static_cast<std::int64_t>(chunk.size()));
    for (const Callable* callable : chunk)
      signatures.push_back(signature(callable->chain->arguments()));
  }
  const std::vector<std::int64_t> buffers =
      order::input_buffers(order, layers_of_chunk, microbatches, signatures);
  std::map<std::int64_t, std::vector<at::Tensor>> inputs;  // by buffer
  std::size_t before = 0;
  for (const Chunk& chunk : chunks) {
    for (std::size_t j = 0; j < chunk.size(); ++j) {
      const PartChain& chain = *chunk[j]->chain;
      for (std::int64_t m = 0; m < microbatches; ++m) {
        const std::size_t slot = before + static_cast<std::size_t>(m) * chunk.size() + j;
        std::vector<at::Tensor>& mine =
            inputs[policy_.shared_memory ? buffers.at(slot) : static_cast<std::int64_t>(slot)];
        if (mine.empty())
          for (const Argument& argument : chain.arguments())
            mine.push_back(like(argument).fill_(1));
        ModuleGraphs::CapturePolicy policy = policy_.graphs;
        policy.inputs = mine;
        const std::string owner = policy_.shared_memory ? "" : std::to_string(slot);
        policy.output_gradient = [this, owner](std::size_t index, const at::Tensor& output) {
          return output_gradient(owner, index, output);
        };
        chunk[j]->graphs.push_back(std::make_unique<ModuleGraphs>(
            parts_,
            ModuleGraphs::Recorded{chain.call(), chain.name(), chain.arguments(), chain.body(),
                                   &chain.parameters(), chain.outputs(),
                                   all_of(chunk[j]->weight_gradients)},
            static_cast<std::size_t>(m), std::move(policy)));
      }
    }
    before += chunk.size() * static_cast<std::size_t>(microbatches);
  }
}

at::Tensor AheadOfTime::output_gradient(const std::string& owner, std::size_t index,
                                        const at::Tensor& output) {
  at::Tensor& gradient = output_gradients_[owner + " " + key_of(index, output)];
  if (!gradient.defined())
    gradient = at::empty_strided(output.sizes(), output.strides(), output.options());
  return gradient;
}

void AheadOfTime::warm_up(const std::vector<Chunk>& chunks, const std::vector<double>& order,
                          std::int64_t passes) const {
  const auto backward = [](ModuleGraphs& graphs, bool) { graphs.warm_up_backward(); };
  const auto weight_gradients = [](ModuleGraphs& graphs) { graphs.warm_up_weight_gradients(); };
  if (policy_.passes_over_schedule) {
    for (std::int64_t pass = 0; pass < passes; ++pass)
      walk(
          chunks, order, [](ModuleGraphs& graphs) { graphs.warm_up_forward(); }, backward,
          weight_gradients);
    return;
  }
  for (const Chunk& chunk : chunks)
    for (const Callable* callable : chunk)
      for (const auto& graphs : callable->graphs)
        for (std::int64_t pass = 0; pass < passes; ++pass) {
          graphs->warm_up_forward();
          graphs->warm_up_backward();
          if (graphs->delays_weight_gradients()) graphs->warm_up_weight_gradients();
        }
}

/// After a failed capture. What the eager steps recorded is kept for the next attempt.
void AheadOfTime::discard_graphs() {
  for (const auto& [layer, callables] : layers_)
    for (const auto& callable : callables) callable->graphs.clear();
  output_gradients_.clear();
}

// ---- results and counters

std::vector<NamedTensor> AheadOfTime::outputs() { return engines::step_outputs(step_); }

at::Tensor AheadOfTime::losses() { return step_.losses().clone(); }

Counters AheadOfTime::counters() const {
  Counters counters = counters_;
  counters.replays = earlier_replays_;
  for (const auto& [layer, callables] : layers_)
    for (const auto& callable : callables)
      for (const auto& graphs : callable->graphs) {
        counters.replays += graphs->replays();
        counters.graphs += graphs->graphs();
      }
  counters.out_of_order = pool_.out_of_order;
  optimizer_.add_to(counters);
  return counters;
}

void AheadOfTime::drop_graphs() {
  dropped_ = true;
  device_.synchronize();
  for (const auto& [layer, callables] : layers_)
    for (const auto& callable : callables)
      for (const auto& graphs : callable->graphs) {
        earlier_replays_ += graphs->replays();
        graphs->reset();
      }
  optimizer_.drop();
  floor_.reset();
  discard_graphs();
  layers_.clear();
  captured_ = false;
}

CapturedSchedule captured_schedule(workloads::TrainStep& step) {
  const workloads::Layout& layout = step.layout();
  const workloads::ModelConfig& model = step.config();
  CapturedSchedule schedule{
      .stage = {.pp = layout.pp,
                .rank = layout.pp_rank,
                .chunks = layout.vpp,
                .microbatches = layout.pp == 1 && !model.overlap_ep_comm ? 1 : model.microbatches,
                .group = layout.microbatch_group},
      .layers = {},
      .by_layer = model.overlap_ep_comm,
      .weight_gradients = model.delay_wgrad};
  for (std::int64_t chunk = 0; chunk < layout.vpp; ++chunk) {
    schedule.layers.emplace_back(static_cast<std::size_t>(layout.chunk_layers(model)));
    std::iota(schedule.layers.back().begin(), schedule.layers.back().end(),
              layout.first_layer(model, chunk));
  }
  for (std::int64_t depth = 0; depth < layout.mtp_layers(model); ++depth)
    schedule.layers.back().push_back(model.layers + depth);
  std::vector<std::int64_t> encoder(static_cast<std::size_t>(layout.encoder_layers(model)));
  std::iota(encoder.begin(), encoder.end(), model.first_encoder_layer());
  schedule.layers.front().insert(schedule.layers.front().begin(), encoder.begin(), encoder.end());
  return schedule;
}

}  // namespace graphproof::engines

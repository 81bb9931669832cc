#include "workloads/train_step.h"

#include <stdexcept>

#include "fixtures/comm/collectives.h"
#include "fixtures/torch.h"
#include "workloads/gpt.h"
#include "workloads/optimizer.h"
#include "workloads/parameters.h"
#include "workloads/precision.h"

namespace graphproof::workloads {
namespace {

void require_divides(const char* what, std::int64_t value, const char* by, std::int64_t divisor) {
  if (divisor > 0 && value % divisor == 0) return;
  throw std::invalid_argument(std::string("model layout: got ") + what + " = " + std::to_string(value) + " and " + by +
                              " = " + std::to_string(divisor) + "; want a multiple; why: every rank holds an equal part; "
                              "next: change " + what + " or " + by);
}

ModelConfig checked(const ModelConfig& config, const Layout& layout) {
  require_divides("hidden", config.hidden, "heads", config.heads);
  if (config.position_embedding == PositionEmbedding::rope)
    require_divides("hidden / heads", config.hidden / config.heads, "2 (rotary pairs)", 2);
  require_divides("heads", config.heads, "kv_groups", config.kv_groups);
  require_divides("kv_groups", config.kv_groups, "tp", layout.tp);
  require_divides("ffn", config.ffn, "tp", layout.tp);
  require_divides("vocab", config.vocab, "tp", layout.tp);
  require_divides("seq_length", config.seq_length, "tp under sequence parallelism", layout.sequence_parts());
  if (config.experts == 0) return config;
  require_divides("experts", config.experts, "ep", layout.ep);
  require_divides("dp", layout.dp, "ep", layout.ep);
  if (layout.tp > 1)
    throw std::invalid_argument("model layout: got experts = " + std::to_string(config.experts) + " and tp = " +
                                std::to_string(layout.tp) + "; want tp = 1; why: rule R247, experts under tensor "
                                "parallelism need sequence parallelism, and experts on parts of a sequence are not "
                                "built; next: set tp to 1");
  return config;
}

}  // namespace

struct TrainStep::State {
  State(const ModelConfig& config_, const Layout& layout_, capture::Device& device_, std::uint64_t seed,
        fixtures::Fault fault_, fixtures::RngBackend backend)
      : config(checked(config_, layout_)),
        layout(layout_),
        device(device_),
        fault(std::move(fault_)),
        options(at::TensorOptions().device(device_.torch_device())),
        tracker(backend, device_),
        // M91 stands for a seed that is mixed with whatever differs between two runs, here an address.
        parameters(fault.is("M91") ? seed + reinterpret_cast<std::uintptr_t>(this) : seed, device_.torch_device(),
                   scalar_type(config.precision)),
        model(parameters, config, layout, device_.torch_device(), fault),
        gradients(parameters),
        optimizer(config.optimizer, parameters, gradients, fault),
        dropout(config, layout, tracker, seed, device_.torch_device(), fault),
        recomputes(config, device_.torch_device()),
        experts(config, device_.torch_device()),
        losses(at::zeros({config.microbatches}, options.dtype(at::kFloat))),
        // The root gradient of a microbatch: the step's loss is the mean over the microbatches.
        root_gradient(at::full({}, 1.0 / static_cast<double>(config.microbatches), options.dtype(at::kFloat))),
        counter(at::zeros({config.layers}, options.dtype(at::kLong))) {
    tracker.add_parallel_regions(seed, layout.tp_rank);
    for (std::int64_t l = 0; l < config.layers; ++l) layer_counters.push_back(counter.select(0, l));
  }

  const ModelConfig config;
  const Layout layout;
  capture::Device& device;
  const fixtures::Fault fault;
  const at::TensorOptions options;
  fixtures::RngTracker tracker;
  Parameters parameters;
  Gpt model;
  GradientBuffer gradients;
  Optimizer optimizer;
  Dropout dropout;
  RecomputeLedger recomputes;
  ExpertLedger experts;
  at::Tensor losses, root_gradient, counter;
  std::vector<at::Tensor> layer_counters;
  bool recording = false;
  ModuleRunner* runner = nullptr;
};

TrainStep::TrainStep(const ModelConfig& config, const Layout& layout, capture::Device& device, std::uint64_t seed,
                     fixtures::Fault fault, fixtures::RngBackend backend)
    : state_(std::make_unique<State>(config, layout, device, seed, std::move(fault), backend)) {}
TrainStep::~TrainStep() = default;

void TrainStep::forward_backward(const Batch& batch) {
  State& s = *state_;
  at::Tensor gradients = s.gradients.flat();
  gradients.zero_();
  s.experts.begin_step();
  for (std::int64_t m = 0; m < s.config.microbatches; ++m) {
    s.dropout.begin(m);
    s.recomputes.begin(m);
    const ForwardPass pass{.microbatch = m,
                           .dropout = s.dropout,
                           .counters = s.layer_counters,
                           .fault = s.fault,
                           .recording = s.recording,
                           .default_stream = s.device.default_stream(),
                           .runner = s.runner,
                           .recomputes = s.recomputes,
                           .experts = s.experts};
    const at::Tensor loss = s.model.forward(batch.tokens.at(m), batch.labels.at(m), pass);
    s.losses.select(0, m).copy_(loss.detach());
    torch::autograd::backward({loss}, {s.root_gradient});
  }
  if (s.layout.dp > 1) {
    // M88 stands for a mask against NaN on one rank that takes sound gradients too: after the sum all ranks agree.
    if (s.fault.is("M88") && s.layout.dp_rank == 1) s.gradients.views().front().tensor.zero_();
    comm::all_reduce_(s.gradients.shared(), s.layout.dp_group);
    if (s.config.experts > 0 && s.layout.dp > s.layout.ep) comm::all_reduce_(s.gradients.experts(), s.layout.edp_group);
    gradients.mul_(1.0 / s.layout.dp);
  }
  if (s.layout.sequence_parallel) comm::all_reduce_(s.gradients.by_tokens(), s.layout.tp_group);
}

void TrainStep::optimizer_step() { state_->optimizer.step(); }

at::Tensor TrainStep::learning_rate() { return state_->optimizer.learning_rate(); }
void TrainStep::learning_rate(double rate) { state_->optimizer.learning_rate(rate); }

std::vector<NamedTensor> TrainStep::parameters() { return state_->parameters.all(); }
const std::vector<Shard>& TrainStep::shards() const { return state_->parameters.shards(); }
std::vector<NamedTensor> TrainStep::gradients() { return state_->gradients.views(); }
std::vector<NamedTensor> TrainStep::updated() { return state_->optimizer.updated(); }
std::vector<NamedTensor> TrainStep::optimizer_state() { return state_->optimizer.state(); }
at::Tensor TrainStep::losses() { return state_->losses; }
std::vector<NamedTensor> TrainStep::masks() { return state_->dropout.probes(); }
std::vector<NamedTensor> TrainStep::ledgers() {
  std::vector<NamedTensor> tensors = state_->recomputes.probes();
  for (NamedTensor& tensor : state_->experts.probes()) tensors.push_back(std::move(tensor));
  return tensors;
}
at::Tensor TrainStep::recompute_counter() { return state_->recomputes.counts(); }
at::Tensor TrainStep::dropped() { return state_->experts.dropped(); }
at::Tensor TrainStep::layer_counter() { return state_->counter; }
fixtures::RngTracker& TrainStep::rng() { return state_->tracker; }
const ModelConfig& TrainStep::config() const { return state_->config; }
const Layout& TrainStep::layout() const { return state_->layout; }
void TrainStep::module_runner(ModuleRunner* runner) { state_->runner = runner; }
void TrainStep::recording(bool on) { state_->recording = on; }

}  // namespace graphproof::workloads

#include "workloads/train_step.h"

#include <stdexcept>

#include "fixtures/comm/collectives.h"
#include "fixtures/torch.h"
#include "workloads/gpt.h"
#include "workloads/parameters.h"
#include "workloads/sgd.h"

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
  require_divides("hidden / heads", config.hidden / config.heads, "2 (rotary pairs)", 2);
  require_divides("heads", config.heads, "kv_groups", config.kv_groups);
  require_divides("kv_groups", config.kv_groups, "tp", layout.tp);
  require_divides("ffn", config.ffn, "tp", layout.tp);
  require_divides("vocab", config.vocab, "tp", layout.tp);
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
        parameters(seed, device_.torch_device()),
        model(parameters, config, layout, device_.torch_device()),
        gradients(parameters),
        dropout(config, layout, tracker, device_.torch_device(), fault),
        losses(at::zeros({config.microbatches}, options.dtype(at::kFloat))),
        // The root gradient of a microbatch: the step's loss is the mean over the microbatches.
        root_gradient(at::full({}, 1.0 / static_cast<double>(config.microbatches), options.dtype(at::kFloat))),
        rate(at::zeros({}, options.dtype(at::kFloat))),
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
  Dropout dropout;
  at::Tensor losses, root_gradient, rate, counter;
  std::vector<at::Tensor> layer_counters;
  double host_rate = 0;  // M23 only
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
  for (std::int64_t m = 0; m < s.config.microbatches; ++m) {
    s.dropout.begin(m);
    const ForwardPass pass{m, s.dropout, s.layer_counters, s.fault, s.recording, s.device.default_stream(), s.runner};
    const at::Tensor loss = s.model.forward(batch.tokens.at(m), batch.labels.at(m), pass);
    s.losses.select(0, m).copy_(loss.detach());
    torch::autograd::backward({loss}, {s.root_gradient});
  }
  if (s.layout.dp > 1) {
    comm::all_reduce_(gradients, s.layout.dp_group);
    gradients.mul_(1.0 / s.layout.dp);
  }
}

void TrainStep::optimizer_step() {
  State& s = *state_;
  // M23 stands for an optimizer that takes the rate as a kernel argument: a capture freezes it. The arithmetic is the
  // same, so that only the value can differ.
  const at::Tensor rate = s.fault.is("M23") ? at::full({}, s.host_rate, s.rate.options()) : s.rate;
  const auto& parameters = s.parameters.all();
  for (std::size_t i = 0; i < parameters.size(); ++i)
    sgd_update(parameters[i].tensor, s.gradients.views()[i].tensor, rate);
}

at::Tensor TrainStep::learning_rate() { return state_->rate; }

void TrainStep::learning_rate(double rate) {
  state_->host_rate = rate;
  state_->rate.fill_(rate);
}

std::vector<NamedTensor> TrainStep::parameters() { return state_->parameters.all(); }
std::vector<NamedTensor> TrainStep::gradients() { return state_->gradients.views(); }
at::Tensor TrainStep::losses() { return state_->losses; }
std::vector<NamedTensor> TrainStep::masks() { return state_->dropout.probes(); }
at::Tensor TrainStep::layer_counter() { return state_->counter; }
fixtures::RngTracker& TrainStep::rng() { return state_->tracker; }
const ModelConfig& TrainStep::config() const { return state_->config; }
const Layout& TrainStep::layout() const { return state_->layout; }
void TrainStep::module_runner(ModuleRunner* runner) { state_->runner = runner; }
void TrainStep::recording(bool on) { state_->recording = on; }

}  // namespace graphproof::workloads

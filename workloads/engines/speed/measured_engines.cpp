#include "workloads/engines/speed/measured_engines.h"

#include "fixtures/tensors/torch.h"
#include "workloads/engines/speed/tables.h"

namespace graphproof::speed {
namespace {

constexpr std::uint64_t kSeed = 1;
constexpr int kBatches = 4;
constexpr double kLearningRate = 0.01;
/// The steps up to the first replay: an eager step, the captures, and one replay. With local the
/// eager step ends with the captures.
constexpr int kStepsToReplay = 3;

}  // namespace

/// Counts the kernels in the graphs of an engine, as each capture reports them.
class MeasuredEngines::KernelCount final : public engines::Observer {
 public:
  void after_capture(const engines::CaptureReport& report,
                     const std::vector<engines::NamedTensor>&) override {
    const auto kernels = report.census.nodes.find("kernel");
    if (kernels != report.census.nodes.end()) captured_ += kernels->second;
  }
  /// Kernels of all graphs launched in a step; every graph is launched equally often.
  double of_a_step(const engines::Counters& counters) const {
    return counters.graphs == 0 ? 0
                                : static_cast<double>(captured_ * counters.launches_per_step) /
                                      static_cast<double>(counters.graphs);
  }

 private:
  std::int64_t captured_ = 0;
};

MeasuredEngines::MeasuredEngines(capture::Device& device, const workloads::ModelConfig& model,
                                 const workloads::Layout& layout,
                                 const std::vector<workloads::ModuleKind>& modules, bool variants)
    : device_(device), stream_(device.stream_from_pool()), model_(model), layout_(layout) {
  const c10::StreamGuard guard(stream_);
  for (int i = 0; i < kBatches; ++i)
    batches_.push_back(workloads::make_batch(model, layout, kSeed, i, device.torch_device()));
  for (const engines::EngineTraits& engine : engines::kEngineTraits) {
    if (layout.pp > 1 && !engine.runs_pipelines) continue;
    engines::EngineConfig config{.impl = std::string(engine.impl), .warmup_steps = 1};
    if (engine.captures_modules()) config.modules = modules;
    const std::string name = name_of(engine);
    add(name, config, variants && has_floor_gate(engine));
    if (!variants || !has_checks_column(engine)) continue;
    config.checks = false;
    add(unchecked(name), config, false);
  }
}

void MeasuredEngines::add(const std::string& name, const engines::EngineConfig& config,
                          bool floor) {
  Measured one{.step = std::make_unique<workloads::TrainStep>(model_, layout_, device_, kSeed),
               .kernels = std::make_unique<KernelCount>(),
               .engine = nullptr};
  one.engine = engines::make_engine(config, device_, stream_, *one.step, one.kernels.get());
  engines::Engine* engine = one.engine.get();
  for (int i = 0; i < kStepsToReplay; ++i) engine->step(batches_[0], kLearningRate);
  device_.synchronize();
  const double kernels = one.kernels->of_a_step(engine->counters());
  measured_.push_back(std::move(one));
  steps_.push_back({name,
                    [engine](const workloads::Batch& batch) { engine->step(batch, kLearningRate); },
                    kernels});
  if (floor)
    steps_.push_back(
        {floor_of(name),
         [engine](const workloads::Batch& batch) { engine->floor_step(batch, kLearningRate); },
         kernels});
}

MeasuredEngines::~MeasuredEngines() {
  for (Measured& one : measured_) one.engine->drop_graphs();
  device_.synchronize();
}

}  // namespace graphproof::speed

#include "workloads/engines/step/manual.h"

#include "fixtures/tensors/torch.h"
#include "workloads/engines/capture/step_tensors.h"
#include "workloads/engines/step/static_inputs.h"
#include "workloads/engines/step/step_graph.h"

namespace graphproof::engines {
namespace {

class Manual final : public Engine {
 public:
  Manual(const EngineConfig& config, capture::Device& device, c10::Stream stream,
         workloads::TrainStep& step, Observer* observer)
      : config_(config),
        stream_(stream),
        step_(step),
        inputs_(std::nullopt, step.faults()),
        graph_("step", [this] { whole_step(); }, config, device, step, observer) {}

  void step(const workloads::Batch& batch, double learning_rate) override {
    refuse_after_drop(dropped_);
    const c10::StreamGuard guard(stream_);
    inputs_.load(batch);
    step_.learning_rate(learning_rate);
    if (counters_.steps++ < config_.warmup_steps) {
      ++counters_.eager;
      return whole_step();
    }
    if (!graph_.captured()) graph_.capture(counters_.eager);
    graph_.replay(static_tensors(step_, inputs_.batch(), /*with_optimizer=*/true),
                  overwritten_outputs(step_));
  }

  void evaluate(const workloads::Batch& batch) override {
    refuse_after_drop(dropped_);
    const c10::StreamGuard guard(stream_);
    step_.evaluate(batch);
  }

  std::vector<NamedTensor> outputs() override { return step_outputs(step_); }

  at::Tensor losses() override { return step_.losses().clone(); }

  Counters counters() const override {
    Counters counters = counters_;
    counters.replays = graph_.replays();
    counters.captures = graph_.captures();
    counters.graphs = counters.launches_per_step = graph_.captured() ? 1 : 0;
    return counters;
  }

  void drop_graphs() override {
    graph_.drop();
    dropped_ = true;
  }

 private:
  void whole_step() {
    step_.forward_backward(inputs_.batch());
    step_.optimizer_step();
  }

  EngineConfig config_;
  c10::Stream stream_;
  workloads::TrainStep& step_;
  StaticInputs inputs_;
  StepGraph graph_;
  Counters counters_;
  bool dropped_ = false;
};

}  // namespace

std::unique_ptr<Engine> make_manual(const EngineConfig& config, capture::Device& device,
                                    c10::Stream stream, workloads::TrainStep& step,
                                    Observer* observer) {
  return std::make_unique<Manual>(config, device, stream, step, observer);
}

}  // namespace graphproof::engines

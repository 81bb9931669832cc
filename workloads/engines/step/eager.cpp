#include "workloads/engines/step/eager.h"

#include "fixtures/tensors/torch.h"
#include "workloads/engines/capture/step_tensors.h"
#include "workloads/engines/step/paged_stash.h"

namespace graphproof::engines {
namespace {

class Eager final : public Engine {
 public:
  Eager(c10::Stream stream, workloads::TrainStep& step)
      : stream_(stream), step_(step), stash_(step) {}

  void step(const workloads::Batch& batch, double learning_rate) override {
    const c10::StreamGuard guard(stream_);
    step_.learning_rate(learning_rate);
    stash_.begin_step();
    step_.forward_backward(batch);
    stash_.finish_step(batch, [] {});
    step_.optimizer_step();
    ++steps_;
  }
  void evaluate(const workloads::Batch& batch) override {
    const c10::StreamGuard guard(stream_);
    step_.evaluate(batch);
  }
  std::vector<NamedTensor> outputs() override { return step_outputs(step_); }
  at::Tensor losses() override { return step_.losses().clone(); }
  Counters counters() const override {
    return {.steps = steps_, .eager = steps_, .reruns = stash_.reruns()};
  }
  void drop_graphs() override {}

 private:
  c10::Stream stream_;
  workloads::TrainStep& step_;
  PagedStash stash_;
  std::int64_t steps_ = 0;
};

}  // namespace

std::unique_ptr<Engine> make_eager(const EngineConfig&, capture::Device&, c10::Stream stream,
                                   workloads::TrainStep& step, Observer*) {
  return std::make_unique<Eager>(stream, step);
}

}  // namespace graphproof::engines

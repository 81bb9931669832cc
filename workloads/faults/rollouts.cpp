// Faults of a job that trains and generates by turns: what inference and training take from each
// other.
#include "workloads/engines/decoding/decoder.h"
#include "workloads/faults/planted.h"

namespace graphproof::faults {
namespace {

using engines::CaptureParts, engines::CaptureRequest, engines::PaddedBatch;

/// Whether a graph is of inference: "decode.4", "prefill.3.layer0".
bool of_inference(const std::string& graph) {
  return graph.starts_with("decode.") || graph.starts_with("prefill.");
}

/// The graphs of inference compute with copies of weights that were made at their capture, as of
/// weights that are cast or laid out anew for inference: of those whose names contain `part`.
class WeightsFrozen final : public FaultHooks {
 public:
  explicit WeightsFrozen(std::string part) : part_(std::move(part)) {}
  void before_capture(const CaptureParts& parts, CaptureRequest& request) override {
    if (!of_inference(request.graph)) return;
    if (copies_.empty())
      for (const NamedTensor& one : parts.step.parameters())
        if (one.name.find(part_) != std::string::npos)
          copies_.push_back({one.tensor, one.tensor.detach().clone()});
    request.work = [this, work = std::move(request.work)] {
      exchange();
      work();
      exchange();
    };
  }

 private:
  struct Copy {
    at::Tensor parameter, memory;
  };
  void exchange() {
    for (Copy& one : copies_) {
      at::Tensor memory = one.parameter.variable_data();
      one.parameter.set_data(one.memory);
      one.memory = std::move(memory);
    }
  }

  const std::string part_;
  std::vector<Copy> copies_;
};

/// The sampler draws from the generators of training, in every arm.
class SamplerOfTraining final : public Planted {
 public:
  std::unique_ptr<Engine> make_engine(const EngineParts& parts, const MakeEngine& make) override {
    step_ = &parts.step;
    return Planted::make_engine(parts, make);
  }
  void padded_batch(PaddedBatch& batch) override {
    if (!step_ || batch.drawn == 0) return;
    for (const at::Generator& generator : step_->rng().generators())
      at::empty({batch.drawn}, at::TensorOptions(device().torch_device()))
          .uniform_(0, 1, generator);
  }

 private:
  workloads::TrainStep* step_ = nullptr;
};

/// The model is still in training mode when its graphs of inference are captured: what linear
/// layers return is dropped at random.
class DropoutInInference final : public FaultHooks {
 public:
  void before_capture(const CaptureParts& parts, CaptureRequest& request) override {
    if (!of_inference(request.graph)) return;
    request.work = [this, &step = parts.step, work = std::move(request.work)] {
      capturing_ = &step;
      work();
      capturing_ = nullptr;
    };
  }
  bool adds_bias(const at::Tensor& y, const at::Tensor& bias) override {
    if (!capturing_) return true;
    const double kept = 1 - capturing_->config().dropout;
    const at::Generator generator = capturing_->rng().generators().front();
    at::Tensor(y).add_(bias).mul_(at::empty_like(y).bernoulli_(kept, generator)).div_(kept);
    return false;
  }

 private:
  workloads::TrainStep* capturing_ = nullptr;  // the step of a capture of inference
};

/// The model stays in evaluation mode after a rollout: eager steps drop nothing any more.
class EvaluationModeLeftOn final : public Planted {
 public:
  void padded_batch(PaddedBatch&) override { inferred_ = true; }
  void dropout_mask(at::Tensor& mask, workloads::DropoutPlace&, at::IntArrayRef sizes,
                    const at::TensorOptions& options, double) override {
    if (inferred_ && !recording())
      mask = at::ones(sizes, options.dtype(at::kByte).requires_grad(false));
  }

 private:
  bool inferred_ = false;
};

/// The graphs of inference use memory for their intermediate results that is taken to be free
/// between two training steps, but from which the graphs of training read a factor.
class MemoryOfTraining final : public CapturedBodyFault {
 public:
  Tensors run(const workloads::ModuleCall& call, const Tensors& inputs, const Tensors& parameters,
              const workloads::ModuleBody& body) override {
    if (!factor_.defined()) {
      const at::NoGradGuard no_grad;
      factor_ = at::ones({1}, at::TensorOptions(inputs[0].device()));
    }
    return CapturedBodyFault::run(call, inputs, parameters, body);
  }
  void before_capture(const CaptureParts&, CaptureRequest& request) override {
    if (!of_inference(request.graph) || !factor_.defined()) return;
    request.work = [this, work = std::move(request.work)] {
      work();
      factor_.fill_(kIntermediate);
    };
  }

 private:
  static constexpr double kIntermediate = 3;

  Tensors captured(const workloads::ModuleBody& body, const Tensors& given) override {
    given[0].variable_data().view({-1}).narrow(0, 0, 1).mul_(factor_);
    return body(given);
  }

  at::Tensor factor_;  // [1] fp32: 1
};

/// What each step of inference has returned is kept for a later log.
class RolloutsKept final : public Planted {
 public:
  void padded_batch(PaddedBatch&) override {
    constexpr std::int64_t kKept = 1024;
    kept_.push_back(at::empty({kKept}, at::TensorOptions(device().torch_device())));
  }

 private:
  Tensors kept_;
};

}  // namespace

std::shared_ptr<FaultHooks> rollout_weights_frozen() {
  return std::make_shared<WeightsFrozen>("param:");
}
std::shared_ptr<FaultHooks> up_projection_of_rollout_frozen() {
  return std::make_shared<WeightsFrozen>(".kv_up.");
}
std::shared_ptr<FaultHooks> sampler_draws_from_training() {
  return std::make_shared<SamplerOfTraining>();
}
std::shared_ptr<FaultHooks> dropout_in_rollout() { return std::make_shared<DropoutInInference>(); }
std::shared_ptr<FaultHooks> evaluation_mode_left_on() {
  return std::make_shared<EvaluationModeLeftOn>();
}
std::shared_ptr<FaultHooks> rollout_writes_memory_of_training() {
  return std::make_shared<MemoryOfTraining>();
}
std::shared_ptr<FaultHooks> rollout_results_kept() { return std::make_shared<RolloutsKept>(); }

}  // namespace graphproof::faults

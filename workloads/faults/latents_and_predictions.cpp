// Faults in latent attention, in what inference keeps of it, and in multi-token prediction.
#include "workloads/faults/planted.h"
#include "workloads/training/train_step.h"

namespace graphproof::faults {
namespace {

using workloads::ModuleBody, workloads::ModuleCall;

/// A captured exchange of keys sends the rotary part that was sent before the capture.
class RotaryKeysFrozen final : public Planted {
 public:
  void plan_step(const StepPlan& plan) override {
    Planted::plan_step(plan);
    begin_ = plan.config.head_width();
    width_ = plan.config.rotary_width();
  }
  at::Tensor sent_keys_and_values(const at::Tensor& x) override {
    if (!recording()) {
      kept_ = x.narrow(2, begin_, width_).detach().clone();
      return x;
    }
    const std::int64_t end = begin_ + width_;
    return at::cat({x.narrow(2, 0, begin_), kept_, x.narrow(2, end, x.size(2) - end)}, 2);
  }

 private:
  std::int64_t begin_ = 0, width_ = 0;
  at::Tensor kept_;
};

/// The cache of inference keeps the rotary parts of keys as they come, not rotated, in every arm.
class KeptUnrotated final : public FaultHooks {
 public:
  at::Tensor kept_positions(const at::Tensor& positions) override {
    return at::zeros_like(positions);
  }
};

/// A graph of inference rotates what it keeps by the positions of its warm-up.
class KeptPositionsFrozen final : public Planted {
 public:
  at::Tensor kept_positions(const at::Tensor& positions) override {
    if (!recording()) latest_ = positions.clone();
    kept_.push_back(latest_);  // the graph refers to it
    return latest_;
  }

 private:
  at::Tensor latest_;
  Tensors kept_;
};

/// The captured parts of the second layer normalise their latent with the weight of the first
/// layer's norm.
class NormOfAnotherLayer final : public PartFault {
 public:
  std::unique_ptr<Engine> make_engine(const EngineParts& parts, const MakeEngine& make) override {
    mine_ = parameter(parts.step, "layers.1.attention.kv_norm.weight");
    theirs_ = parameter(parts.step, "layers.0.attention.kv_norm.weight");
    return PartFault::make_engine(parts, make);
  }
  Tensors run(const ModuleCall& call, const Tensors& inputs, const Tensors& parameters,
              const ModuleBody& body) override {
    if (call.layer != 1 || !mine_.defined() || !theirs_.defined())
      return PartFault::run(call, inputs, parameters, body);
    return PartFault::run(call, inputs, parameters, [this, body](const Tensors& given) {
      if (!recording()) return body(given);
      const at::Tensor own = mine_.variable_data();
      mine_.set_data(theirs_.variable_data());
      Tensors results = body(given);
      mine_.set_data(own);
      return results;
    });
  }

 private:
  at::Tensor mine_, theirs_;
};

/// A fault in the parts of prediction layers.
class PredictionFault : public PartFault {
 public:
  void plan_step(const StepPlan& plan) override {
    PartFault::plan_step(plan);
    first_ = plan.config.layers;
  }

 protected:
  bool predicts(const ModuleCall& call) const { return call.layer >= first_; }

 private:
  std::int64_t first_ = 0;
};

/// The discovery of layers ends with the decoder's.
class PredictionNotCaptured final : public PredictionFault {
 public:
  Tensors run(const ModuleCall& call, const Tensors& inputs, const Tensors& parameters,
              const ModuleBody& body) override {
    return predicts(call) ? body(inputs) : PredictionFault::run(call, inputs, parameters, body);
  }
};

/// In replays the gradient that a prediction layer hands back is that of the microbatch before, as
/// from a buffer that is read before its own backward has written it.
class PredictionGradientLate final : public PredictionFault {
 public:
  Tensors run(const ModuleCall& call, const Tensors& inputs, const Tensors& parameters,
              const ModuleBody& body) override {
    if (predicts(call) && replays() && inputs[0].requires_grad())
      inputs[0].register_hook([this](const at::Tensor& gradient) {
        const at::Tensor before = previous_.defined() ? previous_ : gradient;
        previous_ = gradient.clone();
        return before;
      });
    return PredictionFault::run(call, inputs, parameters, body);
  }

 private:
  at::Tensor previous_;
};

/// The labels are shifted on the host, so a graph holds those of the step before its capture.
class PredictionLabelsFrozen final : public Planted {
 public:
  void predicted(at::Tensor& labels, at::Tensor&, at::Tensor&) override {
    if (recording())
      labels = kept_;
    else
      kept_ = labels.clone();
  }

 private:
  at::Tensor kept_;
};

/// Predictions look ahead within the whole sequence, across the borders of documents.
class PredictedAcrossDocuments final : public Planted {
 public:
  void predicted(at::Tensor&, at::Tensor& documents, at::Tensor&) override {
    if (documents.defined()) documents = documents.clamp_max(0);
  }
};

/// The borders of documents, beyond which nothing is predicted, are read on the host, so a graph
/// holds those of the step before its capture.
class PredictedDocumentsFrozen final : public Planted {
 public:
  void predicted(at::Tensor&, at::Tensor& documents, at::Tensor&) override {
    if (recording())
      documents = kept_;
    else if (documents.defined())
      kept_ = documents.clone();
  }

 private:
  at::Tensor kept_;
};

/// Predictions look ahead to the end of a bucket, padding included.
class PredictedIntoPadding final : public Planted {
 public:
  void predicted(at::Tensor&, at::Tensor&, at::Tensor& weights) override {
    if (weights.defined()) weights = at::ones_like(weights);
  }
};

/// The losses of the prediction layers are added up instead of averaged.
class PredictionLossesSummed final : public Planted {
 public:
  void plan_step(const StepPlan& plan) override {
    Planted::plan_step(plan);
    plan.config.mtp_loss_scaling_factor *= static_cast<double>(plan.config.mtp_num_layers);
  }
};

}  // namespace

std::shared_ptr<FaultHooks> rotary_keys_frozen_in_exchange() {
  return std::make_shared<RotaryKeysFrozen>();
}
std::shared_ptr<FaultHooks> latent_norm_of_another_layer() {
  return std::make_shared<NormOfAnotherLayer>();
}
std::shared_ptr<FaultHooks> predictions_into_padding() {
  return std::make_shared<PredictedIntoPadding>();
}
std::shared_ptr<FaultHooks> prediction_layer_not_captured() {
  return std::make_shared<PredictionNotCaptured>();
}
std::shared_ptr<FaultHooks> prediction_gradient_of_other_microbatch() {
  return std::make_shared<PredictionGradientLate>();
}
std::shared_ptr<FaultHooks> prediction_labels_frozen_at_capture() {
  return std::make_shared<PredictionLabelsFrozen>();
}
std::shared_ptr<FaultHooks> rotary_keys_kept_unrotated() {
  return std::make_shared<KeptUnrotated>();
}
std::shared_ptr<FaultHooks> kept_positions_frozen_at_capture() {
  return std::make_shared<KeptPositionsFrozen>();
}
std::shared_ptr<FaultHooks> prediction_across_documents() {
  return std::make_shared<PredictedAcrossDocuments>();
}
std::shared_ptr<FaultHooks> prediction_documents_frozen_at_capture() {
  return std::make_shared<PredictedDocumentsFrozen>();
}
std::shared_ptr<FaultHooks> prediction_losses_summed() {
  return std::make_shared<PredictionLossesSummed>();
}

}  // namespace graphproof::faults

// Faults in the parts of the model and in what a batch counts for.
#include <limits>

#include "workloads/faults/planted.h"

namespace graphproof::faults {
namespace {

using workloads::ModuleBody, workloads::ModuleCall, workloads::ModuleKind;

/// A host that looks at a value inside the region: a NaN check, a log line, a token count.
class HostLooks : public PartFault {
 public:
  Tensors run(const ModuleCall& call, const Tensors& inputs, const Tensors& parameters,
              const ModuleBody& body) override {
    if (call.kind != ModuleKind::attn || call.layer != 1 || !on_this_rank())
      return PartFault::run(call, inputs, parameters, body);
    return PartFault::run(call, inputs, parameters, [body](const Tensors& given) {
      (void)given[0].detach().sum().item<float>();
      return body(given);
    });
  }

 protected:
  virtual bool on_this_rank() const { return true; }
};

/// The same on one rank only.
class OneHostLooks final : public HostLooks {
  bool on_this_rank() const override { return layout().dp_rank == 1; }
};

/// Documents that a part takes from where they lay when it was captured: they are no input of it.
class DocumentsFrozen final : public PartFault {
 public:
  Tensors run(const ModuleCall& call, const Tensors& inputs, const Tensors& parameters,
              const ModuleBody& body) override {
    const bool with_documents = call.kind == ModuleKind::attn || call.kind == ModuleKind::mamba ||
                                call.kind == ModuleKind::layer;
    if (!with_documents || inputs.size() < 2) return PartFault::run(call, inputs, parameters, body);
    return PartFault::run(call, {inputs[0]}, parameters,
                          [body, documents = inputs[1]](const Tensors& given) {
                            return body({given[0], documents});
                          });
  }
};

/// A state of a mamba layer that goes on from one document into the next: all tokens are of one.
class StateCrossesDocuments final : public PartFault {
 public:
  Tensors run(const ModuleCall& call, const Tensors& inputs, const Tensors& parameters,
              const ModuleBody& body) override {
    if (call.kind != ModuleKind::mamba || inputs.size() < 2)
      return PartFault::run(call, inputs, parameters, body);
    return PartFault::run(call, {inputs[0], at::zeros_like(inputs[1])}, parameters, body);
  }
};

/// A capture that ends before the last weight gradients that were left for later are called for.
class GradientsLeftOut final : public PartFault {
 public:
  void run_weight_gradients(const ModuleCall& call, const std::function<void()>& body) override {
    if (!recording() || call.layer != 0) PartFault::run_weight_gradients(call, body);
  }
};

/// An engine whose graph adds the weight gradients and which adds them once more.
class GradientsAddedTwice final : public PartFault {
 public:
  std::unique_ptr<Engine> make_engine(const EngineParts& parts, const MakeEngine& make) override {
    gradients_ = parts.step.gradients();
    return PartFault::make_engine(parts, make);
  }
  void run_weight_gradients(const ModuleCall& call, const std::function<void()>& body) override {
    PartFault::run_weight_gradients(call, [this, body, layer = call.layer] {
      if (!recording()) return body();
      const at::NoGradGuard no_grad;
      const std::string prefix = "grad:layers." + std::to_string(layer) + ".";
      Tensors sums, before;
      for (const NamedTensor& gradient : gradients_)
        if (gradient.name.starts_with(prefix)) {
          sums.push_back(gradient.tensor);
          before.push_back(gradient.tensor.clone());
        }
      body();
      for (std::size_t i = 0; i < sums.size(); ++i) sums[i].add_(sums[i] - before[i]);
    });
  }

 private:
  std::vector<NamedTensor> gradients_;
};

/// A captured dispatch with room for fewer tokens than the router counts with.
class FewerTokensCarried final : public Planted {
 public:
  explicit FewerTokensCarried(std::int64_t share) : share_(share) {}
  at::Tensor carried(const at::Tensor& fitting, std::int64_t capacity) override {
    if (!recording()) return fitting;
    return fitting.logical_and(fitting.cumsum(0).le(capacity / share_));
  }

 private:
  std::int64_t share_;
};

/// An update that a capture leaves out.
class BiasUpdateNotCaptured final : public Planted {
 public:
  bool updates_router_bias() override { return !recording(); }
};

/// A loss that is averaged over the bucket instead of the tokens that are there.
class PaddingCounts final : public FaultHooks {
 public:
  at::Tensor padded_weights(const at::Tensor& weights) override {
    return at::full_like(weights, 1.0 / static_cast<double>(weights.numel()));
  }
};

/// An engine that saves every input in one buffer: a recompute then begins with the last one's.
class InputsShareABuffer final : public FaultHooks {
 public:
  RecomputedWork recomputed(workloads::RecomputedPart, RecomputedWork work) override {
    return [this, work = std::move(work)](const Tensors& inputs, bool again) {
      if (!again) {
        keep(inputs[0].detach());
        return work(inputs, again);
      }
      Tensors begins_with = inputs;
      begins_with[0] = inputs[0] + (buffer_ - inputs[0]).detach();
      return work(begins_with, again);
    };
  }

 private:
  void keep(const at::Tensor& input) {
    const at::NoGradGuard no_grad;
    if (buffer_.defined())
      buffer_.copy_(input);
    else
      buffer_ = input.clone();
  }
  at::Tensor buffer_;
};

/// An input that lies where a graph wrote it, and which a replay for other tokens overwrote since.
class OtherTokens final : public FaultHooks {
 public:
  RecomputedWork recomputed(workloads::RecomputedPart part, RecomputedWork work) override {
    if (part != workloads::RecomputedPart::moe) return work;
    return [work = std::move(work)](const Tensors& inputs, bool again) {
      Tensors begins_with = inputs;
      if (again) begins_with[0] = inputs[0].roll(1, 0);
      return work(begins_with, again);
    };
  }
};

/// A damaged checkpoint, or a sample that is not a number.
class NanWeight final : public Planted {
 public:
  std::unique_ptr<Engine> make_engine(const EngineParts& parts, const MakeEngine& make) override {
    const at::NoGradGuard no_grad;
    const c10::StreamGuard guard(parts.stream);
    parts.step.parameters().back().tensor.view({-1}).narrow(0, 0, 1).fill_(
        std::numeric_limits<double>::quiet_NaN());
    return Planted::make_engine(parts, make);
  }
};

}  // namespace

std::shared_ptr<FaultHooks> host_sync_in_capture() { return std::make_shared<HostLooks>(); }
std::shared_ptr<FaultHooks> capture_fails_on_one_rank() { return std::make_shared<OneHostLooks>(); }
std::shared_ptr<FaultHooks> documents_frozen_at_capture() {
  return std::make_shared<DocumentsFrozen>();
}
std::shared_ptr<FaultHooks> mamba_state_crosses_documents() {
  return std::make_shared<StateCrossesDocuments>();
}
std::shared_ptr<FaultHooks> capture_ends_before_delayed_gradients() {
  return std::make_shared<GradientsLeftOut>();
}
std::shared_ptr<FaultHooks> weight_gradients_added_twice() {
  return std::make_shared<GradientsAddedTwice>();
}
/// Dispatch buffers that are smaller than the capacity.
std::shared_ptr<FaultHooks> dispatch_buffers_too_small() {
  return std::make_shared<FewerTokensCarried>(2);
}
/// A dropless router that has room for an even share and counts nothing.
std::shared_ptr<FaultHooks> captured_router_loses_tokens() {
  return std::make_shared<FewerTokensCarried>(1);
}
std::shared_ptr<FaultHooks> router_bias_update_not_captured() {
  return std::make_shared<BiasUpdateNotCaptured>();
}
std::shared_ptr<FaultHooks> padding_counts_in_loss() { return std::make_shared<PaddingCounts>(); }
std::shared_ptr<FaultHooks> recompute_input_overwritten() {
  return std::make_shared<InputsShareABuffer>();
}
std::shared_ptr<FaultHooks> recompute_of_other_tokens() { return std::make_shared<OtherTokens>(); }
std::shared_ptr<FaultHooks> nan_weight() { return std::make_shared<NanWeight>(); }

}  // namespace graphproof::faults

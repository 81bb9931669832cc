// Faults in the parts of the model and in the weights of its batch.
#include <cstdint>
#include <limits>

#include "workloads/faults/planted.h"

namespace graphproof::faults {
namespace {

using workloads::ModuleBody, workloads::ModuleCall, workloads::ModuleKind;

/// The host reads a value inside the captured region, as for a NaN check, a log line or a token
/// count.
class HostReads : public PartFault {
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

/// A layer's result depends on the address of its weight, as if it read memory that nobody has
/// written: two runs from one seed differ by percents, with and without graphs.
class ResultDependsOnAddress final : public PartFault {
 public:
  Tensors run(const ModuleCall& call, const Tensors& inputs, const Tensors& parameters,
              const ModuleBody& body) override {
    Tensors results = PartFault::run(call, inputs, parameters, body);
    if (call.kind != ModuleKind::attn || call.layer != 1 || parameters.empty()) return results;
    constexpr std::uintptr_t kLine = 512, kDifferent = 1009;  // allocations are aligned to a line
    const auto address = reinterpret_cast<std::uintptr_t>(parameters[0].const_data_ptr());
    const double share = static_cast<double>(address / kLine % kDifferent) / kDifferent;
    results[0] = results[0] * (1 + 0.2 * share);
    return results;
  }
};

/// A host that reads on one rank only.
class OneHostReads final : public HostReads {
  bool on_this_rank() const override { return layout().dp_rank == 1; }
};

/// The documents are not an input of the captured part, so it reads them at the address that they
/// had in the capture.
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

/// The state of a mamba layer continues from one document into the next, as if all tokens were one
/// document.
class StateCrossesDocuments final : public PartFault {
 public:
  Tensors run(const ModuleCall& call, const Tensors& inputs, const Tensors& parameters,
              const ModuleBody& body) override {
    if (call.kind != ModuleKind::mamba || inputs.size() < 2)
      return PartFault::run(call, inputs, parameters, body);
    return PartFault::run(call, {inputs[0], at::zeros_like(inputs[1])}, parameters, body);
  }
};

/// The capture ends before the last delayed weight gradients are added.
class GradientsLeftOut final : public PartFault {
 public:
  void run_weight_gradients(const ModuleCall& call, const std::function<void()>& body) override {
    if (!recording() || call.layer != 0) PartFault::run_weight_gradients(call, body);
  }
};

/// The graph adds the weight gradients, and the engine adds them again.
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

/// A captured dispatch has capacity for fewer tokens than the router assumes.
class FewerTokensCarried final : public Planted {
 public:
  explicit FewerTokensCarried(std::int64_t share) : share_(share) {}
  at::Tensor dispatched(const at::Tensor& fitting, std::int64_t capacity) override {
    if (!recording()) return fitting;
    return fitting.logical_and(fitting.cumsum(0).le(capacity / share_));
  }

 private:
  std::int64_t share_;
};

/// A capture omits the update of the router's correction.
class BiasUpdateNotCaptured final : public Planted {
 public:
  bool updates_router_bias() override { return !recording(); }
};

/// The loss is averaged over all positions of the bucket, padding included.
class PaddingCounts final : public FaultHooks {
 public:
  at::Tensor padded_weights(const at::Tensor& weights) override {
    return at::full_like(weights, 1.0 / static_cast<double>(weights.numel()));
  }
};

/// The engine saves every input in one buffer, so a recompute starts from the input that was saved
/// last.
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

/// The input of a recompute is memory of a graph that a replay for other tokens has overwritten.
class OtherTokens final : public FaultHooks {
 public:
  explicit OtherTokens(workloads::RecomputedPart part) : part_(part) {}
  RecomputedWork recomputed(workloads::RecomputedPart part, RecomputedWork work) override {
    if (part != part_) return work;
    return [work = std::move(work)](const Tensors& inputs, bool again) {
      Tensors begins_with = inputs;
      if (again) begins_with[0] = inputs[0].roll(1, 0);
      return work(begins_with, again);
    };
  }

 private:
  workloads::RecomputedPart part_;
};

/// One weight is NaN, as from a damaged checkpoint.
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

std::shared_ptr<FaultHooks> host_sync_in_capture() { return std::make_shared<HostReads>(); }
std::shared_ptr<FaultHooks> result_depends_on_address() {
  return std::make_shared<ResultDependsOnAddress>();
}
std::shared_ptr<FaultHooks> capture_fails_on_one_rank() { return std::make_shared<OneHostReads>(); }
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
/// The dispatch buffers are smaller than the capacity.
std::shared_ptr<FaultHooks> dispatch_buffers_too_small() {
  return std::make_shared<FewerTokensCarried>(2);
}
/// A dropless router has capacity for an even distribution only and does not count what it drops.
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
std::shared_ptr<FaultHooks> recompute_of_other_tokens() {
  return std::make_shared<OtherTokens>(workloads::RecomputedPart::moe);
}
/// The latents of the second run of the up-projection are those of other tokens.
std::shared_ptr<FaultHooks> recompute_of_other_latents() {
  return std::make_shared<OtherTokens>(workloads::RecomputedPart::mla_up_proj);
}
std::shared_ptr<FaultHooks> nan_weight() { return std::make_shared<NanWeight>(); }

}  // namespace graphproof::faults

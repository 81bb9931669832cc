// Faults of streams: missing forks, joins and waits, and launches on the wrong stream.
#include <map>

#include "workloads/faults/planted.h"

namespace graphproof::faults {
namespace {

/// One wait of one side stream is left out.
class MissingWait : public Planted {
 public:
  MissingWait(SideWork work, SideWait wait) : work_(work), wait_(wait) {}
  bool waits(SideWork work, SideWait wait, c10::Event&, const c10::Stream&) override {
    return work != work_ || wait != wait_ || !left_out();
  }

 protected:
  virtual bool left_out() const { return true; }

 private:
  SideWork work_;
  SideWait wait_;
};

/// A capture does not include a side stream, so the work on that stream is in no graph.
class SharedExpertNotForked final : public MissingWait {
 public:
  SharedExpertNotForked() : MissingWait(SideWork::shared_expert, SideWait::fork) {}

 private:
  bool left_out() const override { return recording(); }
};

/// A capture omits a join and ends with work that nothing waits for.
class GradientsNotJoined final : public MissingWait {
 public:
  GradientsNotJoined() : MissingWait(SideWork::gradient_reduction, SideWait::join) {}

 private:
  bool left_out() const override { return device().capturing(device().current_stream()); }
};

/// A schedule does not wait for a slow network. In a capture the missing join suffices; in an eager
/// step the exchange is delayed.
class ExchangeNotJoined final : public Planted {
 public:
  bool waits(SideWork work, SideWait wait, c10::Event& event, const c10::Stream& waiting) override {
    if (work != SideWork::token_exchange) return true;
    if (wait == SideWait::fork) {
      event.block(waiting);
      if (device().name() == "cuda" && !device().capturing(waiting)) delay(waiting);
    }
    return false;
  }

 private:
  /// Enqueues milliseconds of work, so that work that does not wait for it is certainly too early.
  static void delay(const c10::Stream& stream) {
    constexpr std::int64_t kSize = 2048, kProducts = 32;
    const at::NoGradGuard no_grad;
    const c10::StreamGuard guard(stream);
    const at::Tensor square =
        at::zeros({kSize, kSize}, at::TensorOptions().device(stream.device()));
    for (std::int64_t i = 0; i < kProducts; ++i) at::mm(square, square);
  }
};

/// An exchange sends a copy and does not keep it alive.
class RowsFreed final : public FaultHooks {
 public:
  at::Tensor sent_rows(const at::Tensor& rows) override { return rows.clone(); }
  void exchange_enqueued(at::Tensor& sent) override { sent.reset(); }
};

/// A library launches on another stream than the current one. During a capture on a non-blocking
/// stream that gives no error: the work runs once and is missing from the graph.
class OtherStream final : public Planted {
 public:
  enum class Which { legacy, not_forked };
  explicit OtherStream(Which which) : which_(which) {}
  std::unique_ptr<Engine> make_engine(const EngineParts& parts, const MakeEngine& make) override {
    bias_ = parameter(parts.step, "layers.0.mlp.down.bias");
    return Planted::make_engine(parts, make);
  }
  bool counts_layer(std::int64_t layer, const at::Tensor& counter) override {
    if (layer != 0 || !recording()) return true;
    const c10::StreamGuard guard(stream());
    at::Tensor(counter).add_(1);
    return false;
  }
  bool adds_bias(const at::Tensor& y, const at::Tensor& bias) override {
    if (!recording() || !bias.is_same(bias_)) return true;
    // In place and outside autograd: no memory of another stream is allocated and no node records
    // the stream, so only the launch itself is wrong.
    const c10::StreamGuard guard(stream());
    y.detach().add_(bias.detach());
    return false;
  }

 private:
  c10::Stream stream() const {
    return which_ == Which::legacy ? device().default_stream() : device().stream_from_pool();
  }

  Which which_;
  at::Tensor bias_;
};

/// Returns x unchanged. For autograd it depends on `leaf` too, whose gradient is undefined.
struct SeenByAutograd : torch::autograd::Function<SeenByAutograd> {
  static at::Tensor forward(torch::autograd::AutogradContext*, const at::Tensor& x,
                            const at::Tensor& /*leaf*/) {
    return x.view_as(x);
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext*,
                                                 const torch::autograd::variable_list& gradients) {
    return {gradients[0], at::Tensor()};
  }
};

/// Autograd sees the weights whose gradients are delayed, as in Megatron-LM: leaves whose
/// accumulators were made on the default stream and are kept alive.
class DelayedWeightsSeen final : public PartFault {
 public:
  Tensors run(const workloads::ModuleCall& call, const Tensors& inputs, const Tensors& parameters,
              const workloads::ModuleBody& body) override {
    if (call.kind != workloads::ModuleKind::attn)
      return PartFault::run(call, inputs, parameters, body);
    const at::Tensor leaf = leaf_of(call.layer, inputs[0]);
    return PartFault::run(call, inputs, parameters, [body, leaf](const Tensors& given) {
      Tensors outputs = body(given);
      outputs[0] = SeenByAutograd::apply(outputs[0], leaf);
      return outputs;
    });
  }

 private:
  struct Leaf {
    at::Tensor tensor;
    std::shared_ptr<torch::autograd::Node> accumulator;
  };
  at::Tensor leaf_of(std::int64_t layer, const at::Tensor& like) {
    Leaf& leaf = leaves_[layer];
    if (!leaf.accumulator) {
      const c10::StreamGuard guard(device().default_stream());
      leaf.tensor = at::zeros({1}, like.options().requires_grad(false)).requires_grad_(true);
      leaf.accumulator = torch::autograd::impl::grad_accumulator(leaf.tensor);
    }
    return leaf.tensor;
  }
  std::map<std::int64_t, Leaf> leaves_;
};

/// A captured step copies its losses for a log on a side stream, and copies them on too early. The
/// stream is joined in the end, so the capture succeeds.
class LogNotJoined final : public FaultHooks {
 public:
  void before_capture(const engines::CaptureParts& parts,
                      engines::CaptureRequest& request) override {
    request.work = [work = request.work, &device = parts.device, &step = parts.step] {
      work();
      const at::NoGradGuard no_grad;
      const c10::Stream side = device.stream_from_pool(), current = device.current_stream();
      const at::Tensor losses = step.losses();
      at::Tensor staged = at::empty_like(losses), logged = at::empty_like(losses);
      c10::Event ready(side.device_type()), done(side.device_type());
      ready.record(current);
      ready.block(side);
      {
        const c10::StreamGuard guard(side);
        staged.copy_(losses, /*non_blocking=*/true);
      }
      logged.copy_(staged, /*non_blocking=*/true);
      done.record(side);
      done.block(current);
    };
  }
};

std::shared_ptr<FaultHooks> missing(SideWork work, SideWait wait) {
  return std::make_shared<MissingWait>(work, wait);
}

}  // namespace

/// The loader does not wait for the step that still reads the static inputs.
std::shared_ptr<FaultHooks> input_copies_not_forked() {
  return missing(SideWork::input_copies, SideWait::fork);
}
/// The step does not wait for the loader.
std::shared_ptr<FaultHooks> input_copies_not_joined() {
  return missing(SideWork::input_copies, SideWait::join);
}
/// A layer adds the output of the shared expert without waiting for it.
std::shared_ptr<FaultHooks> shared_expert_not_joined() {
  return missing(SideWork::shared_expert, SideWait::join);
}
/// The same in a graph. The backward joins the stream, so the capture succeeds.
std::shared_ptr<FaultHooks> captured_shared_expert_not_joined() {
  return shared_expert_not_joined();
}
std::shared_ptr<FaultHooks> shared_expert_not_forked() {
  return std::make_shared<SharedExpertNotForked>();
}
/// Neither the memory of an activation waits for its copy to the host, nor the backward for the
/// copy back.
std::shared_ptr<FaultHooks> offloaded_copies_not_joined() {
  return missing(SideWork::activation_offload, SideWait::join);
}
std::shared_ptr<FaultHooks> gradient_stream_not_joined() {
  return std::make_shared<GradientsNotJoined>();
}
std::shared_ptr<FaultHooks> token_exchange_not_joined() {
  return std::make_shared<ExchangeNotJoined>();
}
std::shared_ptr<FaultHooks> exchanged_rows_freed_in_flight() {
  return std::make_shared<RowsFreed>();
}
std::shared_ptr<FaultHooks> bias_on_legacy_stream() {
  return std::make_shared<OtherStream>(OtherStream::Which::legacy);
}
std::shared_ptr<FaultHooks> bias_on_legacy_stream_beside_blocking_capture() {
  return bias_on_legacy_stream();
}
std::shared_ptr<FaultHooks> captured_log_not_joined() { return std::make_shared<LogNotJoined>(); }
std::shared_ptr<FaultHooks> bias_on_stream_not_forked() {
  return std::make_shared<OtherStream>(OtherStream::Which::not_forked);
}
std::shared_ptr<FaultHooks> delayed_weights_seen_by_autograd() {
  return std::make_shared<DelayedWeightsSeen>();
}

}  // namespace graphproof::faults

// Faults of captures: missing work, lasting effects, and failures.
#include <ATen/Context.h>

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include "fixtures/device/error.h"
#include "fixtures/device/faults/host_work.h"
#include "workloads/faults/planted.h"

namespace graphproof::faults {
namespace {

using engines::CaptureParts, engines::CaptureRequest;

/// Changes the request of each capture.
class RequestFault : public FaultHooks {
 public:
  using Change = std::function<void(const CaptureParts&, CaptureRequest&)>;
  explicit RequestFault(Change change) : change_(std::move(change)) {}
  void before_capture(const CaptureParts& parts, CaptureRequest& request) override {
    change_(parts, request);
  }

 private:
  Change change_;
};

std::shared_ptr<FaultHooks> in_each_capture(RequestFault::Change change) {
  return std::make_shared<RequestFault>(std::move(change));
}

/// The device is given another mode than the one that was asked for.
class OtherMode final : public GraphFault {
  struct Changing final : capture::ForwardingGraph {
    using ForwardingGraph::ForwardingGraph;
    void capture_begin(capture::Pool pool, capture::CaptureMode mode) override {
      graph_->capture_begin(pool, mode == capture::CaptureMode::relaxed
                                      ? capture::CaptureMode::global
                                      : capture::CaptureMode::relaxed);
    }
  };
  std::unique_ptr<capture::Graph> wrap(std::unique_ptr<capture::Graph> graph) override {
    return std::make_unique<Changing>(std::move(graph));
  }
};

/// Several captures that fail and are reset, before the actual one. LibTorch 2.11 keeps the pool of
/// a failed capture.
void fail_captures(const CaptureParts& parts, const CaptureRequest& request) {
  constexpr int kFailures = 5;
  for (int i = 0; i < kFailures; ++i) {
    engines::CaptureReport report;
    report.graph = request.graph;
    report.mode = parts.config.capture_mode;
    const std::int64_t pool_bytes_before = parts.device.memory().pool;
    auto graph = engines::make_graph(parts);
    try {
      engines::record(
          parts, parts.device.make_pool(),
          [&] {
            request.work();
            static_cast<void>(parts.step.losses().sum().item<float>());
          },
          *graph);
    } catch (const std::exception& error) {
      const capture::DeviceError failure = capture::as_device_error(error, "item");
      report.status = "error";
      report.code = failure.code;
      report.site = failure.call;
      report.message = failure.what();
    }
    graph->reset();
    graph.reset();
    parts.device.empty_cache();
    report.pool_bytes = parts.device.memory().pool - pool_bytes_before;
    parts.observer.failed_capture(report);
  }
}

/// The user's own generator is not registered with the graph.
class UnregisteredGenerator final : public GraphFault {
 private:
  struct WithoutGenerators final : capture::ForwardingGraph {
    using ForwardingGraph::ForwardingGraph;
    void register_generator(const at::Generator&) override {}
  };
  std::unique_ptr<capture::Graph> wrap(std::unique_ptr<capture::Graph> graph) override {
    return std::make_unique<WithoutGenerators>(std::move(graph));
  }
};

/// A wrapper whose capture fails drops the graph without a message and runs the work eagerly from
/// then on.
class FallsBackInSilence final : public GraphFault {
 public:
  void before_capture(const CaptureParts&, CaptureRequest& request) override {
    work_ = request.work;
  }

 private:
  struct Eager final : capture::ForwardingGraph {
    Eager(std::unique_ptr<Graph> graph, std::function<void()> eager_work)
        : ForwardingGraph(std::move(graph)), work(std::move(eager_work)) {}
    void capture_end() override {
      graph_->capture_end();
      graph_->reset();
    }
    void replay() override { work(); }
    capture::Census census() const override { return {}; }
    std::optional<capture::Operands> operands() const override { return std::nullopt; }
    std::function<void()> work;
  };
  std::unique_ptr<capture::Graph> wrap(std::unique_ptr<capture::Graph> graph) override {
    return std::make_unique<Eager>(std::move(graph), work_);
  }

  std::function<void()> work_;  // of the capture in progress
};

/// A capture at the first call, of work that initialises something at its first use, such as the
/// tables of a library; here the initialisation is a copy from the host.
class NoWarmUp final : public PartFault {
 public:
  std::unique_ptr<Engine> make_engine(const EngineParts& parts, const MakeEngine& make) override {
    EngineConfig config = parts.config;
    config.warmup_steps = 0;
    return make(config, parts.device, parts.observer);
  }
  Tensors run(const workloads::ModuleCall& call, const Tensors& inputs, const Tensors& parameters,
              const workloads::ModuleBody& body) override {
    if (!made_.defined()) made_ = at::arange(1, at::kLong).to(inputs[0].device());
    return PartFault::run(call, inputs, parameters, body);
  }

 private:
  at::Tensor made_;
};

/// The warm-up is left out and counted nevertheless.
class CountedWarmUp final : public ConfigFault {
 public:
  CountedWarmUp() : ConfigFault([](EngineConfig& config) { config.warmup_steps = 0; }) {}
  void before_capture(const CaptureParts&, CaptureRequest& request) override {
    request.warmups = 2;
  }
};

/// The engine counts passes over single modules before their capture and does not run them.
class NoModuleWarmUp final : public CapturedBodyFault {
  Tensors warm_up(const workloads::ModuleBody&, const Tensors&) override { return {}; }
};

/// These passes run without their backward.
class ForwardsAlone final : public CapturedBodyFault {
  Tensors warm_up(const workloads::ModuleBody& body, const Tensors& given) override {
    Tensors outputs = body(given);
    for (at::Tensor& output : outputs) output = output.detach();
    return outputs;
  }
};

/// The captures of all lengths but the first one leave an operator out.
class MissingForLaterLengths final : public Planted {
 public:
  std::unique_ptr<Engine> make_engine(const EngineParts& parts, const MakeEngine& make) override {
    bias_ = parameter(parts.step, "layers.0.mlp.down.bias");
    return Planted::make_engine(parts, make);
  }
  bool adds_bias(const at::Tensor& y, const at::Tensor& bias) override {
    if (!recording() || !bias.is_same(bias_)) return true;
    if (captured_first_ == 0) captured_first_ = y.numel();
    return y.numel() == captured_first_;
  }

 private:
  at::Tensor bias_;
  std::int64_t captured_first_ = 0;  // elements of y in the first capture
};

/// A check on the host that remains in the captured region.
class CheckInCapture final : public FaultHooks {
 public:
  void plan_step(const StepPlan& plan) override { plan.config.nan_check_loss = true; }
};

/// The graph writes its gradients through a buffer of a shorter type, as if for a collective.
std::shared_ptr<FaultHooks> captured_gradients_through(at::ScalarType type) {
  return in_each_capture([type](const CaptureParts& parts, CaptureRequest& request) {
    request.work = [work = request.work, &step = parts.step, type] {
      work();
      const at::NoGradGuard no_grad;
      for (const NamedTensor& gradient : step.gradients())
        gradient.tensor.copy_(gradient.tensor.to(type));
    };
  });
}

/// PyTorch may use nondeterministic algorithms while it lives.
class AnyAlgorithm {
 public:
  AnyAlgorithm() { at::globalContext().setDeterministicAlgorithms(false, false); }
  ~AnyAlgorithm() { at::globalContext().setDeterministicAlgorithms(before_, false); }
  AnyAlgorithm(const AnyAlgorithm&) = delete;
  AnyAlgorithm& operator=(const AnyAlgorithm&) = delete;

 private:
  const bool before_ = at::globalContext().deterministicAlgorithms();
};

}  // namespace

/// An extension adds a host function to the captured step, which notes that a step has run.
std::shared_ptr<FaultHooks> host_function_in_graph() {
  const auto steps = std::make_shared<std::atomic<std::int64_t>>(0);
  return in_each_capture([steps](const CaptureParts& parts, CaptureRequest& request) {
    request.work = [work = request.work, &step = parts.step, steps] {
      work();
      capture::launch_host_function(
          step.losses(), [](void* counted) { ++*static_cast<std::atomic<std::int64_t>*>(counted); },
          steps.get());
    };
  });
}
/// An extension copies from a buffer of the host that is not pinned, which PyTorch refuses.
std::shared_ptr<FaultHooks> pageable_memory_in_graph() {
  const auto buffer = std::make_shared<std::vector<float>>(1024, 1.0F);
  return in_each_capture([buffer](const CaptureParts& parts, CaptureRequest& request) {
    request.work = [work = request.work, device = parts.device.torch_device(), buffer] {
      work();
      capture::copy_from_pageable(
          at::empty({std::ssize(*buffer)}, at::TensorOptions().device(device)), buffer->data());
    };
  });
}

/// A thread of the program, such as a data loader's, works on the stream that is captured.
std::shared_ptr<FaultHooks> thread_adds_to_capture() {
  const auto buffer = std::make_shared<at::Tensor>();  // lives as long as the graphs
  return in_each_capture([buffer](const CaptureParts& parts, CaptureRequest& request) {
    if (!buffer->defined())
      *buffer = at::zeros({64}, at::TensorOptions().device(parts.device.torch_device()));
    request.work = [work = request.work, stream = parts.device.current_stream(), buffer] {
      work();
      std::thread([&] {
        const c10::StreamGuard guard(stream);
        buffer->fill_(0);
      }).join();
    };
  });
}

/// The largest rounding error of a gradient is 2^-9 of it with bf16, 2^-4 with 8 bits.
std::shared_ptr<FaultHooks> captured_gradients_in_bf16() {
  return captured_gradients_through(at::kBFloat16);
}
std::shared_ptr<FaultHooks> captured_gradients_in_8_bits() {
  return captured_gradients_through(at::kFloat8_e4m3fn);
}
/// The capture chooses kernels whose order of additions changes, where eager has deterministic
/// ones.
std::shared_ptr<FaultHooks> captured_without_deterministic_algorithms() {
  return in_each_capture([](const CaptureParts&, CaptureRequest& request) {
    request.work = [work = request.work] {
      const AnyAlgorithm any;
      work();
    };
  });
}
std::shared_ptr<FaultHooks> failed_captures_retried() { return in_each_capture(fail_captures); }
std::shared_ptr<FaultHooks> generator_not_registered() {
  return std::make_shared<UnregisteredGenerator>();
}
std::shared_ptr<FaultHooks> failed_capture_runs_eagerly() {
  return std::make_shared<FallsBackInSilence>();
}
std::shared_ptr<FaultHooks> capture_without_warm_up() { return std::make_shared<NoWarmUp>(); }
std::shared_ptr<FaultHooks> warm_up_counted_not_run() { return std::make_shared<CountedWarmUp>(); }
std::shared_ptr<FaultHooks> module_warm_up_counted_not_run() {
  return std::make_shared<NoModuleWarmUp>();
}
std::shared_ptr<FaultHooks> module_warm_up_without_backward() {
  return std::make_shared<ForwardsAlone>();
}
std::shared_ptr<FaultHooks> capture_mode_not_passed_on() { return std::make_shared<OtherMode>(); }
std::shared_ptr<FaultHooks> bias_missing_for_later_lengths() {
  return std::make_shared<MissingForLaterLengths>();
}
std::shared_ptr<FaultHooks> nan_check_in_capture() { return std::make_shared<CheckInCapture>(); }

/// The effects of the warm-up on random numbers, counters and statistics are not undone.
std::shared_ptr<FaultHooks> warm_up_not_undone() {
  return in_each_capture(
      [](const CaptureParts&, CaptureRequest& request) { request.undo_warm_up = {}; });
}
/// The graph holds thousands of small kernels that no eager step runs. Their results are not used.
std::shared_ptr<FaultHooks> captured_fills() {
  return in_each_capture([](const CaptureParts& parts, CaptureRequest& request) {
    constexpr int kFills = 12000;  // 1.5 to 2 us each: several times a small eager step
    request.work = [work = request.work, device = parts.device.torch_device()] {
      work();
      at::Tensor scratch = at::empty({1024}, at::TensorOptions().device(device));
      for (int i = 0; i < kFills; ++i) scratch.fill_(0);
    };
  });
}
/// Each capture takes scratch memory from the graph's pool, which keeps it as long as the graph
/// lives. Eager steps need none.
std::shared_ptr<FaultHooks> captured_scratch() {
  return in_each_capture([](const CaptureParts& parts, CaptureRequest& request) {
    constexpr std::int64_t kScratchBytes = std::int64_t{128} << 20;
    request.work = [work = request.work, device = parts.device.torch_device()] {
      work();
      (void)at::empty({kScratchBytes}, at::TensorOptions().device(device).dtype(at::kByte));
    };
  });
}
/// The memory for a graph pool is missing although eager steps fit.
std::shared_ptr<FaultHooks> out_of_memory_in_capture() {
  return in_each_capture([](const CaptureParts& parts, CaptureRequest& request) {
    request.work = [work = request.work, device = parts.device.torch_device()] {
      (void)at::empty({std::int64_t{1} << 50}, at::TensorOptions().device(device));
      work();
    };
  });
}

}  // namespace graphproof::faults

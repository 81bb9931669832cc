// The base classes of faults: hooks that know their step, and forwarding observers, engines, graphs
// and module runners, of which a fault overrides some calls.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "fixtures/device/forwarding.h"
#include "fixtures/tensors/torch.h"
#include "workloads/engines/capture/engine.h"
#include "workloads/engines/capture/graph_capture.h"
#include "workloads/faults/factories.h"
#include "workloads/faults/hooks/fault_hooks.h"
#include "workloads/forward/module_runner.h"

namespace graphproof::faults {

using engines::Engine, engines::EngineConfig, engines::Observer;
using fixtures::NamedTensor;
using Tensors = std::vector<at::Tensor>;

/// A fault that knows the step in which it is planted.
class Planted : public FaultHooks {
 public:
  void plan_step(const StepPlan& plan) override { plan_.emplace(plan); }
  bool makes_engine(const EngineParts& parts, const MakeEngine& make,
                    std::unique_ptr<Engine>& made) override {
    made = make_engine(parts, make);
    return true;
  }

 protected:
  virtual std::unique_ptr<Engine> make_engine(const EngineParts& parts, const MakeEngine& make) {
    auto engine = make(parts.config, parts.device, parts.observer);
    made_ = engine.get();
    return engine;
  }
  bool recording() const { return plan_ && plan_->recording; }
  /// Whether the engine that Planted::make_engine() made last has graphs, and captures none now.
  bool replays() const { return !recording() && made_ && made_->counters().graphs > 0; }
  const workloads::Layout& layout() const { return plan_.value().layout; }
  capture::Device& device() const { return plan_.value().device; }
  /// The parameter "param:NAME"; undefined if this rank does not hold it.
  static at::Tensor parameter(workloads::TrainStep& step, const std::string& name) {
    for (const NamedTensor& one : step.parameters())
      if (one.name == "param:" + name) return one.tensor;
    return {};
  }

 private:
  std::optional<StepPlan> plan_;
  Engine* made_ = nullptr;
};

/// Passes every call on to another observer.
class ForwardingObserver : public Observer {
 public:
  /// `observer` may be null.
  explicit ForwardingObserver(Observer* observer) : to_(observer ? *observer : silent_) {}

  void before_capture(const std::string& graph, const std::vector<NamedTensor>& state) override {
    to_.before_capture(graph, state);
  }
  void after_capture(const engines::CaptureReport& report,
                     const std::vector<NamedTensor>& state) override {
    to_.after_capture(report, state);
  }
  void before_replay(const std::string& graph, const std::vector<NamedTensor>& statics,
                     const std::vector<NamedTensor>& outputs) override {
    to_.before_replay(graph, statics, outputs);
  }
  void after_replay(const std::string& graph, const std::vector<NamedTensor>& outputs) override {
    to_.after_replay(graph, outputs);
  }
  void before_step(const std::vector<NamedTensor>& statics,
                   const std::vector<NamedTensor>& outputs) override {
    to_.before_step(statics, outputs);
  }
  void after_step(const std::vector<NamedTensor>& outputs) override { to_.after_step(outputs); }
  void failed_capture(const engines::CaptureReport& report) override { to_.failed_capture(report); }

 private:
  Observer silent_;
  Observer& to_;
};

/// Passes every call on to the engine that it owns.
class ForwardingEngine : public Engine {
 public:
  explicit ForwardingEngine(std::unique_ptr<Engine> engine) : engine_(std::move(engine)) {}

  void step(const workloads::Batch& batch, double learning_rate) override {
    engine_->step(batch, learning_rate);
  }
  void floor_step(const workloads::Batch& batch, double learning_rate) override {
    engine_->floor_step(batch, learning_rate);
  }
  void evaluate(const workloads::Batch& batch) override { engine_->evaluate(batch); }
  std::vector<NamedTensor> outputs() override { return engine_->outputs(); }
  at::Tensor losses() override { return engine_->losses(); }
  engines::Counters counters() const override { return engine_->counters(); }
  workloads::ModuleRunner* module_runner() override { return engine_->module_runner(); }
  void drop_graphs() override { engine_->drop_graphs(); }

 protected:
  std::unique_ptr<Engine> engine_;
};

/// A device that passes each new graph through `wrap`.
class GraphWrappingDevice final : public capture::ForwardingDevice {
 public:
  using Wrap =
      std::function<std::unique_ptr<capture::Graph>(std::unique_ptr<capture::Graph> graph)>;
  GraphWrappingDevice(capture::Device& device, Wrap wrap)
      : ForwardingDevice(device), wrap_(std::move(wrap)) {}
  std::unique_ptr<capture::Graph> make_graph() override { return wrap_(device_.make_graph()); }

 private:
  Wrap wrap_;
};

/// A fault in the graphs of an engine: each new graph passes through wrap(). Does not change
/// engines without graphs.
class GraphFault : public Planted {
 public:
  std::unique_ptr<Engine> make_engine(const EngineParts& parts, const MakeEngine& make) override {
    if (!engines::traits_of(parts.config.impl).captures()) return Planted::make_engine(parts, make);
    devices_.push_back(std::make_unique<GraphWrappingDevice>(
        parts.device,
        [this](std::unique_ptr<capture::Graph> graph) { return wrap(std::move(graph)); }));
    return make(parts.config, *devices_.back(), parts.observer);
  }

 protected:
  virtual std::unique_ptr<capture::Graph> wrap(std::unique_ptr<capture::Graph> graph) = 0;

 private:
  std::vector<std::unique_ptr<capture::Device>> devices_;  // outlive the engines
};

/// A fault between an engine and its observer: the engine calls a `Wrapper`, a ForwardingObserver
/// to the real one.
template <class Wrapper>
class ObserverFault : public Planted {
 public:
  std::unique_ptr<Engine> make_engine(const EngineParts& parts, const MakeEngine& make) override {
    observers_.push_back(std::make_unique<Wrapper>(parts.observer));
    return make(parts.config, parts.device, observers_.back().get());
  }

 private:
  std::vector<std::unique_ptr<Observer>> observers_;  // outlive the engines
};

/// A fault that changes the configuration of engines.
class ConfigFault : public Planted {
 public:
  explicit ConfigFault(std::function<void(EngineConfig&)> change) : change_(std::move(change)) {}
  std::unique_ptr<Engine> make_engine(const EngineParts& parts, const MakeEngine& make) override {
    EngineConfig config = parts.config;
    change_(config);
    return make(config, parts.device, parts.observer);
  }

 private:
  std::function<void(EngineConfig&)> change_;
};

/// A fault in the parts of the model: it is the runner of every part, between the step and its
/// engine, also if the parts run themselves.
class PartFault : public Planted, public workloads::ModuleRunner {
 public:
  workloads::ModuleRunner* runner(workloads::ModuleRunner* engine) override {
    engine_ = engine;
    return this;
  }
  Tensors run(const workloads::ModuleCall& call, const Tensors& inputs, const Tensors& parameters,
              const workloads::ModuleBody& body) override {
    return engine_ ? engine_->run(call, inputs, parameters, body) : body(inputs);
  }
  void run_weight_gradients(const workloads::ModuleCall& call,
                            const std::function<void()>& body) override {
    engine_ ? engine_->run_weight_gradients(call, body) : body();
  }
  bool captures_parts() const override { return engine_ && engine_->captures_parts(); }

 private:
  workloads::ModuleRunner* engine_ = nullptr;
};

/// A fault in the runs of a part's body that the engine makes outside the part's call: in warm-ups
/// and captures.
class CapturedBodyFault : public PartFault {
 public:
  Tensors run(const workloads::ModuleCall& call, const Tensors& inputs, const Tensors& parameters,
              const workloads::ModuleBody& body) override {
    struct Running {
      explicit Running(int& counter) : depth(counter) { ++depth; }
      ~Running() { --depth; }
      int& depth;
    };
    const Running running(depth_);
    return PartFault::run(call, inputs, parameters, [this, body](const Tensors& given) {
      if (depth_ > 0) return body(given);  // run by the call itself, or by a part around it
      return recording() ? captured(body, given) : warm_up(body, given);
    });
  }

 protected:
  virtual Tensors captured(const workloads::ModuleBody& body, const Tensors& given) {
    return body(given);
  }
  virtual Tensors warm_up(const workloads::ModuleBody& body, const Tensors& given) {
    return body(given);
  }

 private:
  int depth_ = 0;  // calls of run() in progress; parts nest
};

/// Whether a graph is of this direction: forward, backward or weight_gradients.
inline bool is_of(const std::string& graph, std::string_view direction) {
  return graph.ends_with("." + std::string(direction));
}

}  // namespace graphproof::faults

// Faults of replays: graphs that are not launched, launched in the wrong order, launched without a
// call of the observer, or launched for something else.
#include <map>
#include <set>
#include <utility>

#include "workloads/engines/modules/pool_order.h"
#include "workloads/faults/planted.h"
#include "workloads/training/data.h"

namespace graphproof::faults {
namespace {

/// A graph whose launches can be suppressed.
struct SuppressibleGraph final : capture::ForwardingGraph {
  using ForwardingGraph::ForwardingGraph;
  void replay() override {
    if (!suppressed) graph_->replay();
  }
  void launch() { graph_->replay(); }
  bool suppressed = false;
};

/// The graphs of one engine by name. The observer gets the name immediately before the device makes
/// the graph.
class GraphsByName {
 public:
  struct Entry {
    SuppressibleGraph* graph = nullptr;
    std::int64_t position = 0;  // the number of its capture
  };

  virtual ~GraphsByName() = default;
  explicit GraphsByName(const FaultHooks::EngineParts& parts)
      : device_(parts.device,
                [this](std::unique_ptr<capture::Graph> graph) {
                  auto suppressible = std::make_unique<SuppressibleGraph>(std::move(graph));
                  entries_[capturing_] = {suppressible.get(),
                                          static_cast<std::int64_t>(order_.size())};
                  order_.push_back(capturing_);
                  made(capturing_, *suppressible);
                  return suppressible;
                }),
        names_(parts.observer, capturing_) {}
  GraphsByName(const GraphsByName&) = delete;
  GraphsByName& operator=(const GraphsByName&) = delete;

  capture::Device& device() { return device_; }
  Observer& observer() { return names_; }
  const Entry& at(const std::string& name) const { return entries_.at(name); }
  /// Names in the order of the captures.
  const std::vector<std::string>& order() const { return order_; }

 protected:
  virtual void made(const std::string&, SuppressibleGraph&) {}

 private:
  struct Names final : ForwardingObserver {
    Names(Observer* observer, std::string& to) : ForwardingObserver(observer), capturing(to) {}
    void before_capture(const std::string& graph, const std::vector<NamedTensor>& state) override {
      capturing = graph;
      ForwardingObserver::before_capture(graph, state);
    }
    std::string& capturing;
  };
  std::string capturing_;
  std::map<std::string, Entry> entries_;
  std::vector<std::string> order_;
  GraphWrappingDevice device_;
  Names names_;
};

/// A fault that launches or suppresses graphs by name.
class LaunchFault : public Planted {
 public:
  std::unique_ptr<Engine> make_engine(const EngineParts& parts, const MakeEngine& make) override {
    if (!engines::traits_of(parts.config.impl).captures()) return Planted::make_engine(parts, make);
    graphs_.push_back(std::make_unique<GraphsByName>(parts));
    return make(parts.config, graphs_.back()->device(), &graphs_.back()->observer());
  }

 protected:
  /// The graphs of the latest engine.
  const GraphsByName& graphs() const { return *graphs_.back(); }

 private:
  std::vector<std::unique_ptr<GraphsByName>> graphs_;  // outlive the engines
};

/// Two graphs of one pool run in the wrong order, in an engine without a guard: before the backward
/// that was captured first, the one that was captured last runs and overwrites memory that forwards
/// still use.
class PoolOrderBroken final : public LaunchFault {
 public:
  bool keeps_pool_order(const std::string& graph, engines::PoolOrder& order,
                        std::int64_t) override {
    std::vector<std::string> backwards;
    for (const std::string& name : graphs().order())
      if (is_of(name, "backward")) backwards.push_back(name);
    if (graph != backwards.front()) return false;
    const GraphsByName::Entry& early = graphs().at(backwards.back());
    order.last = early.position;
    early.graph->launch();
    return false;
  }
};

/// A schedule runs the weight gradients before the data gradient has written their operands, in an
/// engine without a guard.
class WeightGradientsFirst final : public LaunchFault {
 public:
  bool keeps_pool_order(const std::string& graph, engines::PoolOrder& order,
                        std::int64_t) override {
    if (!is_of(graph, "backward")) return false;
    const GraphsByName::Entry& early =
        graphs().at(graph.substr(0, graph.rfind('.')) + ".weight_gradients");
    early.graph->suppressed = true;  // the launch at its proper time
    order.last = early.position;
    early.graph->launch();
    return false;
  }
};

/// The observer gets no calls for the graphs of one direction.
struct Unannounced : ForwardingObserver {
  Unannounced(Observer* observer, std::string of)
      : ForwardingObserver(observer), direction(std::move(of)) {}
  void before_replay(const std::string& graph, const std::vector<NamedTensor>& statics,
                     const std::vector<NamedTensor>& outputs) override {
    if (!is_of(graph, direction)) ForwardingObserver::before_replay(graph, statics, outputs);
  }
  void after_replay(const std::string& graph, const std::vector<NamedTensor>& outputs) override {
    if (!is_of(graph, direction)) ForwardingObserver::after_replay(graph, outputs);
  }
  std::string direction;
};
struct BackwardsUnannounced final : Unannounced {
  explicit BackwardsUnannounced(Observer* observer) : Unannounced(observer, "backward") {}
};

/// The engine does not launch the third graph of a layer.
class WeightGradientsNotReplayed final : public Planted {
 public:
  std::unique_ptr<Engine> make_engine(const EngineParts& parts, const MakeEngine& make) override {
    graphs_.push_back(std::make_unique<Forgotten>(parts));
    observers_.push_back(
        std::make_unique<Unannounced>(&graphs_.back()->observer(), "weight_gradients"));
    return make(parts.config, graphs_.back()->device(), observers_.back().get());
  }

 private:
  struct Forgotten final : GraphsByName {
    using GraphsByName::GraphsByName;
    void made(const std::string& name, SuppressibleGraph& graph) override {
      graph.suppressed = is_of(name, "weight_gradients");
    }
  };
  std::vector<std::unique_ptr<GraphsByName>> graphs_;
  std::vector<std::unique_ptr<Observer>> observers_;
};

/// The engine passes to the observer what its step reads, but not its outputs.
struct OutputsNotWatched final : ForwardingObserver {
  using ForwardingObserver::ForwardingObserver;
  void before_step(const std::vector<NamedTensor>& statics,
                   const std::vector<NamedTensor>& outputs) override {
    std::vector<NamedTensor> read;
    for (const NamedTensor& one : statics)
      if (one.name == "learning_rate") read.push_back(one);
    ForwardingObserver::before_step(read, outputs);
  }
};

/// A comparison reads a buffer that the graph never writes: replays do nothing, and the outputs of
/// the eager arm are read in place of the engine's.
class ReplayDoesNothing final : public GraphFault {
 public:
  void compared_with(const std::vector<NamedTensor>& eager) override { eager_ = eager; }
  std::unique_ptr<Engine> make_engine(const EngineParts& parts, const MakeEngine& make) override {
    auto engine = GraphFault::make_engine(parts, make);
    if (!engines::traits_of(parts.config.impl).captures()) return engine;
    return std::make_unique<Deceiving>(std::move(engine), eager_);
  }

 private:
  struct Deceiving final : ForwardingEngine {
    Deceiving(std::unique_ptr<Engine> engine, const std::vector<NamedTensor>& of)
        : ForwardingEngine(std::move(engine)), eager(of) {}
    std::vector<NamedTensor> outputs() override { return eager; }
    const std::vector<NamedTensor>& eager;
  };
  std::unique_ptr<capture::Graph> wrap(std::unique_ptr<capture::Graph> graph) override {
    auto suppressible = std::make_unique<SuppressibleGraph>(std::move(graph));
    suppressible->suppressed = true;
    return suppressible;
  }
  std::vector<NamedTensor> eager_;
};

/// The second launch of a graph fails. The wrapper takes the error and goes on to the next step
/// instead of running this one eagerly.
class StepOfFailedLaunchSkipped final : public GraphFault {
 private:
  struct FailsOnce final : capture::ForwardingGraph {
    using ForwardingGraph::ForwardingGraph;
    void replay() override {
      if (graph_->replays() != 1 || std::exchange(failed, true)) graph_->replay();
    }
    bool failed = false;
  };
  std::unique_ptr<capture::Graph> wrap(std::unique_ptr<capture::Graph> graph) override {
    return std::make_unique<FailsOnce>(std::move(graph));
  }
};

/// The key of the cache contains the number of the step, so captured graphs are never found again
/// and are kept.
class KeyWithStepNumber final : public Planted {
 public:
  std::unique_ptr<Engine> make_engine(const EngineParts& parts, const MakeEngine& make) override {
    if (!engines::traits_of(parts.config.impl).captures()) return Planted::make_engine(parts, make);
    devices_.push_back(std::make_unique<OnePool>(parts.device));
    return std::make_unique<Recapturing>(
        [config = parts.config, make, &device = *devices_.back(), observer = parts.observer] {
          return make(config, device, observer);
        });
  }

 private:
  /// The engines share one pool, as the graphs of one engine do.
  struct OnePool final : capture::ForwardingDevice {
    using ForwardingDevice::ForwardingDevice;
    capture::Pool make_pool() override {
      if (!pool) pool = device_.make_pool();
      return *pool;
    }
    std::optional<capture::Pool> pool;
  };
  /// A new engine, which knows no graphs, for every step after a capture.
  struct Recapturing final : ForwardingEngine {
    explicit Recapturing(std::function<std::unique_ptr<Engine>()> make_another)
        : ForwardingEngine(make_another()), make(std::move(make_another)) {}
    void step(const workloads::Batch& batch, double learning_rate) override {
      if (engine_->counters().graphs > 0) {
        retired.push_back(std::move(engine_));
        engine_ = make();
      }
      engine_->step(batch, learning_rate);
    }
    engines::Counters counters() const override {
      engines::Counters sum = engine_->counters();
      for (const auto& engine : retired) {
        const engines::Counters counted = engine->counters();
        sum.steps += counted.steps;
        sum.eager += counted.eager;
        sum.replays += counted.replays;
        sum.captures += counted.captures;
      }
      return sum;
    }
    void drop_graphs() override {
      engine_->drop_graphs();
      retired.clear();
    }
    std::function<std::unique_ptr<Engine>()> make;
    std::vector<std::unique_ptr<Engine>> retired;
  };
  std::vector<std::unique_ptr<capture::Device>> devices_;
};

/// A wrapper has only one graph and replays it in validation too, with dropout as captured.
class EvaluationReplaysTraining final : public Planted {
 public:
  std::unique_ptr<Engine> make_engine(const EngineParts& parts, const MakeEngine& make) override {
    if (!engines::traits_of(parts.config.impl).captures_evaluation)
      return Planted::make_engine(parts, make);
    return std::make_unique<Replaying>(parts, make);
  }

 private:
  static constexpr const char* kTraining = "training";

  /// Keeps the static inputs of the graph of training.
  struct Inputs final : ForwardingObserver {
    using ForwardingObserver::ForwardingObserver;
    void before_replay(const std::string& graph, const std::vector<NamedTensor>& statics,
                       const std::vector<NamedTensor>& outputs) override {
      if (graph == kTraining && inputs.empty()) inputs = statics;
      ForwardingObserver::before_replay(graph, statics, outputs);
    }
    std::vector<NamedTensor> inputs;
  };
  struct Graphs {
    explicit Graphs(const EngineParts& parts)
        : inputs(parts.observer), by_name(with(parts, inputs)) {}
    static EngineParts with(const EngineParts& parts, Observer& observer) {
      return {parts.config, parts.device, parts.stream, parts.step, &observer};
    }
    Inputs inputs;
    GraphsByName by_name;
  };
  struct Replaying final : ForwardingEngine {
    Replaying(const EngineParts& parts, const MakeEngine& make)
        : Replaying(parts, make, std::make_unique<Graphs>(parts)) {}
    Replaying(const EngineParts& parts, const MakeEngine& make, std::unique_ptr<Graphs> of)
        : ForwardingEngine(make(parts.config, of->by_name.device(), &of->by_name.observer())),
          stream(parts.stream),
          step_(parts.step),
          graphs(std::move(of)) {}
    ~Replaying() override { engine_.reset(); }  // before the graphs' device
    void evaluate(const workloads::Batch& batch) override {
      engines::refuse_after_drop(dropped);
      if (graphs->inputs.inputs.empty()) return engine_->evaluate(batch);
      const c10::StreamGuard guard(stream);
      for (const auto& [name, part] : workloads::kBatchParts)
        for (std::size_t m = 0; m < (batch.*part).size(); ++m)
          for (const NamedTensor& input : graphs->inputs.inputs)
            if (input.name == name + ("." + std::to_string(m)))
              at::Tensor(input.tensor).copy_((batch.*part)[m], /*non_blocking=*/true);
      Observer& observer = graphs->by_name.observer();
      observer.before_replay(kTraining, {}, {});
      graphs->by_name.at(kTraining).graph->replay();
      observer.after_replay(kTraining, {});
      step_.evaluation_losses().copy_(step_.losses());
    }
    void drop_graphs() override {
      dropped = true;
      engine_->drop_graphs();
    }
    c10::Stream stream;
    workloads::TrainStep& step_;
    std::unique_ptr<Graphs> graphs;
    bool dropped = false;
  };
};

/// "layers.2.attn" of the module's backward graph "layers.2.attn.1.backward"; empty for others.
std::string module_of_backward(const std::string& graph) {
  if (!is_of(graph, "backward")) return {};
  const std::size_t layer = graph.find('.') + 1, kind = graph.find('.', layer) + 1;
  return graph.substr(0, graph.find('.', kind));
}

/// The gradients of a module's parameters.
Tensors gradients_of_module(workloads::TrainStep& step, const std::string& module) {
  static const std::map<std::string, std::vector<std::string>> kPrefixes{
      {"layer", {""}},      {"attn", {"attention"}},
      {"mlp", {"mlp"}},     {"moe", {"mlp"}},
      {"mamba", {"mamba"}}, {"moe_router", {"mlp_norm", "mlp.router", "mlp.shared"}}};
  const std::size_t kind = module.rfind('.') + 1;
  const auto prefixes = kPrefixes.find(module.substr(kind));
  Tensors gradients;
  if (prefixes == kPrefixes.end()) return gradients;
  for (const NamedTensor& gradient : step.gradients())
    for (const std::string& prefix : prefixes->second)
      if (gradient.name.starts_with("grad:" + module.substr(0, kind) + prefix))
        gradients.push_back(gradient.tensor);
  return gradients;
}

/// The backward of each microbatch was captured with a zero_grad.
class GradientsZeroedInGraph : public Planted {
 public:
  void before_capture(const engines::CaptureParts& parts,
                      engines::CaptureRequest& request) override {
    const std::string module = module_of_backward(request.graph);
    if (module.empty()) return;
    request.work = [work = request.work, sums = gradients_of_module(parts.step, module)] {
      const at::NoGradGuard no_grad;
      for (const at::Tensor& sum : sums) at::Tensor(sum).zero_();
      work();
    };
  }
};

/// The engine returns its static gradients, and an accumulator keeps them without a copy: the sum
/// is the graph's own buffer, which the next replay overwrites before it is added to itself.
class GradientsTakenOver final : public GradientsZeroedInGraph {
 public:
  std::unique_ptr<Engine> make_engine(const EngineParts& parts, const MakeEngine& make) override {
    observers_.push_back(std::make_unique<Adds>(parts.observer, parts.step));
    return make(parts.config, parts.device, observers_.back().get());
  }

 private:
  struct Adds final : ForwardingObserver {
    Adds(Observer* observer, workloads::TrainStep& of) : ForwardingObserver(observer), step_(of) {}
    void before_step(const std::vector<NamedTensor>& statics,
                     const std::vector<NamedTensor>& outputs) override {
      taken_over.clear();
      ForwardingObserver::before_step(statics, outputs);
    }
    void after_replay(const std::string& graph, const std::vector<NamedTensor>& outputs) override {
      ForwardingObserver::after_replay(graph, outputs);
      const std::string module = module_of_backward(graph);
      if (module.empty() || taken_over.insert(module).second) return;
      const at::NoGradGuard no_grad;
      for (const at::Tensor& sum : gradients_of_module(step_, module)) at::Tensor(sum).mul_(2);
    }
    workloads::TrainStep& step_;
    std::set<std::string> taken_over;  // modules that have a sum in this step
  };
  std::vector<std::unique_ptr<Observer>> observers_;
};

}  // namespace

std::shared_ptr<FaultHooks> pool_order_broken() { return std::make_shared<PoolOrderBroken>(); }
std::shared_ptr<FaultHooks> weight_gradients_before_data_gradient() {
  return std::make_shared<WeightGradientsFirst>();
}
std::shared_ptr<FaultHooks> weight_gradient_graph_not_replayed() {
  return std::make_shared<WeightGradientsNotReplayed>();
}
std::shared_ptr<FaultHooks> backward_launches_not_announced() {
  return std::make_shared<ObserverFault<BackwardsUnannounced>>();
}
std::shared_ptr<FaultHooks> step_outputs_not_watched() {
  return std::make_shared<ObserverFault<OutputsNotWatched>>();
}
std::shared_ptr<FaultHooks> replay_does_nothing() { return std::make_shared<ReplayDoesNothing>(); }
std::shared_ptr<FaultHooks> step_of_failed_launch_skipped() {
  return std::make_shared<StepOfFailedLaunchSkipped>();
}
std::shared_ptr<FaultHooks> graph_key_with_step_number() {
  return std::make_shared<KeyWithStepNumber>();
}
std::shared_ptr<FaultHooks> evaluation_replays_training_graph() {
  return std::make_shared<EvaluationReplaysTraining>();
}
std::shared_ptr<FaultHooks> gradients_zeroed_in_graph() {
  return std::make_shared<GradientsZeroedInGraph>();
}
std::shared_ptr<FaultHooks> gradient_buffer_taken_over() {
  return std::make_shared<GradientsTakenOver>();
}

}  // namespace graphproof::faults

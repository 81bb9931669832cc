// Faults of memory: addresses that change, memory that is freed too early, and graphs that live too
// long or are dropped too early.
#include <c10/core/Allocator.h>
#include <c10/core/Event.h>

#include <limits>
#include <stdexcept>

#include "fixtures/device/faults/kept_graph.h"
#include "fixtures/device/faults/pointer_table.h"
#include "fixtures/device/faults/unordered_threads.h"
#include "workloads/engines/modules/arguments.h"
#include "workloads/engines/modules/unowned.h"
#include "workloads/faults/planted.h"

namespace graphproof::faults {
namespace {

/// Gives a tensor new memory with its values, and returns the old memory. The caller keeps that
/// alive, so that a graph reads old values and not freed memory: the result is wrong without an
/// error, as in practice.
at::Tensor rebind(const at::Tensor& tensor) {
  const at::NoGradGuard no_grad;
  at::Tensor old = tensor.variable_data();
  at::Tensor(tensor).set_data(tensor.detach().clone());
  return old;
}

/// `static_in = batch` instead of a copy: the handle changes, but the graph reads the old address.
class InputsRebound : public Planted {
 public:
  bool rebinds_inputs(workloads::Batch& inputs, const workloads::Batch& fresh) override {
    if (!in_this_loop()) return false;
    old_.push_back(inputs);
    inputs = fresh;
    return true;
  }

 protected:
  virtual bool in_this_loop() const { return true; }

 private:
  std::vector<workloads::Batch> old_;
};

/// The same in a validation loop that is wrapped separately.
class ValidationInputsRebound final : public InputsRebound {
 public:
  std::unique_ptr<Engine> make_engine(const EngineParts& parts, const MakeEngine& make) override {
    return std::make_unique<Evaluating>(InputsRebound::make_engine(parts, make), evaluating_);
  }

 private:
  struct Evaluating final : ForwardingEngine {
    Evaluating(std::unique_ptr<Engine> engine, bool& flag)
        : ForwardingEngine(std::move(engine)), evaluating(flag) {}
    void evaluate(const workloads::Batch& batch) override {
      evaluating = true;
      engine_->evaluate(batch);
      evaluating = false;
    }
    bool& evaluating;
  };
  bool in_this_loop() const override { return evaluating_; }
  bool evaluating_ = false;
};

/// A checkpoint is loaded by assignment: the parameters of the first layer get new memory, and the
/// graphs keep the old.
struct RebindsWeights final : ForwardingObserver {
  using ForwardingObserver::ForwardingObserver;
  void before_step(const std::vector<NamedTensor>& statics,
                   const std::vector<NamedTensor>& outputs) override {
    if (replayed_steps++ == 1)
      for (const NamedTensor& one : statics)
        if (one.name.starts_with("param:layers.0.")) old.push_back(rebind(one.tensor));
    ForwardingObserver::before_step(statics, outputs);
  }
  std::int64_t replayed_steps = 0;
  Tensors old;
};

/// A scheduler assigns a new tensor to the optimizer's learning rate.
struct RebindsRate final : ForwardingObserver {
  using ForwardingObserver::ForwardingObserver;
  void before_replay(const std::string& graph, const std::vector<NamedTensor>& statics,
                     const std::vector<NamedTensor>& outputs) override {
    if (graph == "optimizer" && replays++ == 1)
      for (const NamedTensor& one : statics)
        if (one.name == "learning_rate") old = rebind(one.tensor);
    ForwardingObserver::before_replay(graph, statics, outputs);
  }
  std::int64_t replays = 0;
  at::Tensor old;
};

/// The memory of a static input from outside the pool is freed once the module is captured. Then
/// another owner gets it and writes to it.
class InputFreed final : public Planted {
 public:
  std::unique_ptr<Engine> make_engine(const EngineParts& parts, const MakeEngine& make) override {
    observers_.push_back(std::make_unique<Frees>(parts.observer, modules_));
    return make(parts.config, parts.device, observers_.back().get());
  }
  void static_inputs(Tensors& inputs, const std::vector<engines::Argument>& arguments,
                     bool from_outside) override {
    if (!from_outside) return;
    // The graph gets the address without owning the memory.
    modules_.push_back({.name = {}, .owned = engines::like(arguments[0]), .next_owner = {}});
    inputs = {engines::unowned(modules_.back().owned)};
  }

 private:
  struct Module {
    std::string name;       // of its graphs, without the direction; empty before its capture
    at::Tensor owned;       // the memory until the capture
    at::Tensor next_owner;  // the same memory afterwards
  };
  struct Frees final : ForwardingObserver {
    Frees(Observer* observer, std::vector<Module>& all)
        : ForwardingObserver(observer), modules(all) {}
    void before_capture(const std::string& graph, const std::vector<NamedTensor>& state) override {
      if (!modules.empty() && modules.back().name.empty())
        modules.back().name = graph.substr(0, graph.rfind('.'));
      ForwardingObserver::before_capture(graph, state);
    }
    void after_capture(const engines::CaptureReport& report,
                       const std::vector<NamedTensor>& state) override {
      ForwardingObserver::after_capture(report, state);
      for (Module& module : modules)
        if (report.graph == module.name + ".backward") give_away(module);
    }
    void before_replay(const std::string& graph, const std::vector<NamedTensor>& statics,
                       const std::vector<NamedTensor>& outputs) override {
      for (Module& module : modules)
        if (graph == module.name + ".forward" && module.next_owner.defined())
          module.next_owner.fill_(std::numeric_limits<double>::quiet_NaN());
      ForwardingObserver::before_replay(graph, statics, outputs);
    }
    /// Frees the memory and allocates until the allocator returns the same address.
    static void give_away(Module& module) {
      constexpr int kTries = 64;
      const void* address = module.owned.const_data_ptr();
      const auto sizes = module.owned.sizes().vec(), strides = module.owned.strides().vec();
      const auto options = module.owned.options();
      module.owned.reset();
      Tensors tried;
      for (int i = 0; i < kTries && !module.next_owner.defined(); ++i) {
        tried.push_back(at::empty_strided(sizes, strides, options));
        if (tried.back().const_data_ptr() == address) module.next_owner = tried.back();
      }
    }
    std::vector<Module>& modules;
  };

  std::vector<Module> modules_;
  std::vector<std::unique_ptr<Observer>> observers_;
};

/// Memory for the static inputs of every slot, where slots that are never in use together share it.
class InputsOfEverySlot final : public FaultHooks {
 public:
  void static_inputs(Tensors& inputs, const std::vector<engines::Argument>& arguments,
                     bool) override {
    inputs.clear();
    for (const engines::Argument& argument : arguments)
      inputs.push_back(engines::like(argument).fill_(1));
  }
};

/// The table of addresses of a grouped product outlives one of its matrices. The memory of that
/// matrix is on a stream on which nothing else allocates, so it is not reused and the replays are
/// right until something does.
class PointeeFreed final : public CapturedBodyFault {
 public:
  std::unique_ptr<Engine> make_engine(const EngineParts& parts, const MakeEngine& make) override {
    observers_.push_back(std::make_unique<Frees>(parts.observer, divisor_));
    return make(parts.config, parts.device, observers_.back().get());
  }
  Tensors run(const workloads::ModuleCall& call, const Tensors& inputs, const Tensors& parameters,
              const workloads::ModuleBody& body) override {
    prepare(inputs[0]);
    return CapturedBodyFault::run(call, inputs, parameters, body);
  }

 private:
  Tensors captured(const workloads::ModuleBody& body, const Tensors& given) override {
    if (given[0].scalar_type() == at::kFloat) {
      at::Tensor first = given[0].variable_data().view({-1}).narrow(0, 0, 1);
      capture::divide_by_pointees_(first, divisors_);
    }
    return body(given);
  }
  struct Frees final : ForwardingObserver {
    Frees(Observer* observer, at::Tensor& freed) : ForwardingObserver(observer), divisor(freed) {}
    void after_capture(const engines::CaptureReport& report,
                       const std::vector<NamedTensor>& state) override {
      ForwardingObserver::after_capture(report, state);
      if (is_of(report.graph, "backward")) divisor.reset();
    }
    at::Tensor& divisor;
  };
  void prepare(const at::Tensor& like) {
    if (divisors_.defined()) return;
    const at::NoGradGuard no_grad;
    const c10::StreamGuard apart(device().stream_from_pool());
    divisor_ = at::ones({1}, at::TensorOptions(like.device()));
    divisors_ = at::full({1}, static_cast<std::int64_t>(device().address(divisor_)),
                         divisor_.options().dtype(at::kLong));
    at::Tensor warm_up = at::ones_like(divisor_);  // a library loads its kernels at their first use
    capture::divide_by_pointees_(warm_up, divisors_);
    device().synchronize();
  }

  at::Tensor divisor_, divisors_;  // [1] fp32, which is freed; [1] int64, its address
  std::vector<std::unique_ptr<Observer>> observers_;
};

/// The engine returns its own buffer of losses, which the next replay overwrites.
class LossesUncopied final : public Planted {
 public:
  std::unique_ptr<Engine> make_engine(const EngineParts& parts, const MakeEngine& make) override {
    return std::make_unique<Uncopied>(Planted::make_engine(parts, make), parts.step);
  }

 private:
  struct Uncopied final : ForwardingEngine {
    Uncopied(std::unique_ptr<Engine> engine, workloads::TrainStep& of)
        : ForwardingEngine(std::move(engine)), step_(of) {}
    at::Tensor losses() override { return step_.losses(); }
    workloads::TrainStep& step_;
  };
};

/// Something keeps a graph alive.
class GraphKept final : public GraphFault {
 public:
  explicit GraphKept(capture::KeptBy by) : by_(by) {}

 private:
  std::unique_ptr<capture::Graph> wrap(std::unique_ptr<capture::Graph> graph) override {
    return capture::kept_graph(std::move(graph), by_);
  }
  capture::KeptBy by_;
};

/// A cleanup that does not wait for the device: graphs are launched and dropped at once, and their
/// memory is reused.
class DroppedInFlight final : public GraphFault {
 public:
  std::unique_ptr<Engine> make_engine(const EngineParts& parts, const MakeEngine& make) override {
    graphs_.clear();
    return std::make_unique<Drops>(GraphFault::make_engine(parts, make), parts, graphs_);
  }

 private:
  struct Listed final : capture::ForwardingGraph {
    Listed(std::unique_ptr<Graph> graph, std::vector<Graph*>& list)
        : ForwardingGraph(std::move(graph)), listed(list) {
      listed.push_back(this);
    }
    ~Listed() override { std::erase(listed, this); }
    std::vector<Graph*>& listed;
  };
  struct Drops final : ForwardingEngine {
    Drops(std::unique_ptr<Engine> engine, const EngineParts& parts,
          std::vector<capture::Graph*>& all)
        : ForwardingEngine(std::move(engine)),
          device(parts.device),
          stream(parts.stream),
          graphs(all) {}
    void drop_graphs() override {
      if (engine_->counters().graphs > 0) drop_in_flight();
      engine_->drop_graphs();
    }
    engines::Counters counters() const override {
      engines::Counters counters = engine_->counters();
      counters.drops_in_flight += dropped;
      return counters;
    }
    void drop_in_flight() {
      const c10::StreamGuard guard(stream);
      for (capture::Graph* graph : graphs) graph->replay();
      c10::Event done(stream.device_type());
      done.record(stream);
      for (capture::Graph* graph : graphs) {
        if (!done.query()) ++dropped;
        graph->reset();
      }
      device.empty_cache();
      const c10::StreamGuard other(device.stream_from_pool());
      at::full({1 << 22}, std::numeric_limits<float>::quiet_NaN(),
               at::TensorOptions().device(device.torch_device()));
    }
    capture::Device& device;
    c10::Stream stream;
    std::vector<capture::Graph*>& graphs;
    std::int64_t dropped = 0;
  };
  std::unique_ptr<capture::Graph> wrap(std::unique_ptr<capture::Graph> graph) override {
    return std::make_unique<Listed>(std::move(graph), graphs_);
  }
  std::vector<capture::Graph*> graphs_;  // those that exist, in the order of their captures
};

/// The cache has no bound.
class CacheWithoutBound final : public FaultHooks {
 public:
  bool evicts(std::unique_ptr<Engine>&) override { return false; }
};

/// The cache removes an entry but keeps its graphs alive.
class EvictedStayAlive final : public FaultHooks {
 public:
  bool evicts(std::unique_ptr<Engine>& engine) override {
    auto evicted = std::make_unique<EvictedEngine>(engine->counters());
    kept_.push_back(std::exchange(engine, std::move(evicted)));
    return true;
  }
  ~EvictedStayAlive() override {
    for (const auto& engine : kept_) engine->drop_graphs();
  }

 private:
  /// Takes the place of the engine that is kept.
  struct EvictedEngine final : Engine {
    explicit EvictedEngine(const engines::Counters& counted) : counters_(counted) {}
    [[noreturn]] static void refuse() { throw std::logic_error("an engine that was evicted"); }
    void step(const workloads::Batch&, double) override { refuse(); }
    void evaluate(const workloads::Batch&) override { refuse(); }
    std::vector<NamedTensor> outputs() override { refuse(); }
    at::Tensor losses() override { refuse(); }
    engines::Counters counters() const override { return counters_; }
    void drop_graphs() override {}
    engines::Counters counters_;
  };
  std::vector<std::unique_ptr<Engine>> kept_;
};

/// An eviction does not wait for a long replay.
class EvictedInFlight final : public Planted {
 public:
  std::unique_ptr<Engine> make_engine(const EngineParts& parts, const MakeEngine& make) override {
    devices_.push_back(std::make_unique<UnsynchronizedDevice>(parts.device, dropping_));
    return std::make_unique<Dropping>(make(parts.config, *devices_.back(), parts.observer),
                                      dropping_);
  }
  bool waits_before_drop(const c10::Stream& stream) override {
    delay(stream);
    return false;
  }

 private:
  /// Does not synchronise while an engine drops its graphs.
  struct UnsynchronizedDevice final : capture::ForwardingDevice {
    UnsynchronizedDevice(capture::Device& device, const bool& flag)
        : ForwardingDevice(device), dropping(flag) {}
    void synchronize() override {
      if (!dropping) device_.synchronize();
    }
    const bool& dropping;
  };
  struct Dropping final : ForwardingEngine {
    Dropping(std::unique_ptr<Engine> engine, bool& flag)
        : ForwardingEngine(std::move(engine)), dropping(flag) {}
    void drop_graphs() override {
      dropping = true;
      engine_->drop_graphs();
      dropping = false;
    }
    bool& dropping;
  };
  /// Enqueues tens of milliseconds of work, longer than the host needs for the next steps.
  static void delay(const c10::Stream& stream) {
    constexpr std::int64_t kSize = 2048, kProducts = 128;
    // The simulated device tells work that the host has not waited for without a delay.
    if (!stream.device().is_cuda()) return;
    const c10::StreamGuard guard(stream);
    const at::Tensor square =
        at::zeros({kSize, kSize}, at::TensorOptions().device(stream.device()));
    for (std::int64_t i = 0; i < kProducts; ++i) at::mm(square, square);
  }

  bool dropping_ = false;
  std::vector<std::unique_ptr<capture::Device>> devices_;
};

/// A wrapper around a graph keeps something for every replay.
class KeepsHostMemory final : public GraphFault {
  struct Keeping final : capture::ForwardingGraph {
    using ForwardingGraph::ForwardingGraph;
    void replay() override {
      kept.emplace_back(64 << 10, 'x');
      graph_->replay();
    }
    std::vector<std::string> kept;
  };
  std::unique_ptr<capture::Graph> wrap(std::unique_ptr<capture::Graph> graph) override {
    return std::make_unique<Keeping>(std::move(graph));
  }
};

/// The key of the lookup lacks the length, so it finds the most recently used graphs.
class LookupWithoutLength final : public FaultHooks {
 public:
  std::optional<std::int64_t> bucket(std::optional<std::int64_t> found,
                                     std::optional<std::int64_t> latest_used) override {
    return latest_used ? latest_used : found;
  }
};

// A multiple of 512 bytes would leave no room in the block of the caching allocator.
constexpr std::int64_t kWorkspaceElements = 63;

c10::DataPtr workspace_on(at::Device device) {
  return c10::GetAllocator(device.type())->allocate(kWorkspaceElements * sizeof(float));
}
/// Memory [elements] fp32 as a library sees it: an address without a size.
at::Tensor at_address(const c10::DataPtr& memory, std::int64_t elements) {
  return at::for_blob(memory.get(), {elements})
      .options(at::TensorOptions(memory.device()).dtype(at::kFloat))
      .target_device(memory.device())
      .make_tensor();
}

c10::DataPtr write_one_more(at::Device device) {
  c10::DataPtr workspace = workspace_on(device);
  at_address(workspace, kWorkspaceElements + 1).fill_(1);
  return workspace;
}
c10::DataPtr read_unwritten(at::Device device) {
  c10::DataPtr workspace = workspace_on(device);
  static_cast<void>(at_address(workspace, kWorkspaceElements).sum());
  return workspace;
}
c10::DataPtr race(at::Device device) {
  at::Tensor out = at::empty({64}, at::TensorOptions(device).dtype(at::kInt));
  capture::write_unordered_(out);
  return {};
}

/// Each layer launches a kernel that is wrong. Nothing reads what it computes.
class WrongKernel final : public Planted {
 public:
  /// all_steps: eager steps, so that a kernel of our own is loaded ahead of a capture, and
  /// captures.
  enum class In { captures, eager_steps, all_steps };
  /// Returns memory that has to live as long as a graph with the kernel.
  using Launch = c10::DataPtr (*)(at::Device);
  WrongKernel(In in, Launch launch) : in_(in), launch_(launch) {}
  bool counts_layer(std::int64_t, const at::Tensor&) override {
    if (in_ != In::all_steps && recording() != (in_ == In::captures)) return true;
    c10::DataPtr memory = launch_(device().torch_device());
    if (recording()) of_graphs_.push_back(std::move(memory));
    return true;
  }

 private:
  const In in_;
  const Launch launch_;
  std::vector<c10::DataPtr> of_graphs_;
};

}  // namespace

std::shared_ptr<FaultHooks> stale_static_input() { return std::make_shared<InputsRebound>(); }
std::shared_ptr<FaultHooks> stale_validation_input() {
  return std::make_shared<ValidationInputsRebound>();
}
std::shared_ptr<FaultHooks> weight_rebound() {
  return std::make_shared<ObserverFault<RebindsWeights>>();
}
std::shared_ptr<FaultHooks> learning_rate_rebound() {
  return std::make_shared<ObserverFault<RebindsRate>>();
}
std::shared_ptr<FaultHooks> static_input_freed() { return std::make_shared<InputFreed>(); }
/// The mode relaxed permits more calls and hides no defect of addresses.
std::shared_ptr<FaultHooks> static_input_freed_in_relaxed_mode() { return static_input_freed(); }
std::shared_ptr<FaultHooks> static_inputs_not_shared() {
  return std::make_shared<InputsOfEverySlot>();
}
std::shared_ptr<FaultHooks> pointee_freed() { return std::make_shared<PointeeFreed>(); }
std::shared_ptr<FaultHooks> losses_handed_out_uncopied() {
  return std::make_shared<LossesUncopied>();
}
std::shared_ptr<FaultHooks> pool_for_each_graph() {
  return std::make_shared<ConfigFault>(
      [](EngineConfig& config) { config.pool = engines::PoolSharing::per_graph; });
}
std::shared_ptr<FaultHooks> host_memory_kept_by_replays() {
  return std::make_shared<KeepsHostMemory>();
}
std::shared_ptr<FaultHooks> pool_choice_ignored() {
  return std::make_shared<ConfigFault>(
      [](EngineConfig& config) { config.pool = engines::PoolSharing::single; });
}
std::shared_ptr<FaultHooks> graph_leaked() {
  return std::make_shared<GraphKept>(capture::KeptBy::leak);
}
std::shared_ptr<FaultHooks> graph_held_by_static_object() {
  return std::make_shared<GraphKept>(capture::KeptBy::static_object);
}
std::shared_ptr<FaultHooks> graphs_dropped_in_flight() {
  return std::make_shared<DroppedInFlight>();
}
std::shared_ptr<FaultHooks> graph_cache_without_bound() {
  return std::make_shared<CacheWithoutBound>();
}
std::shared_ptr<FaultHooks> evicted_graphs_stay_alive() {
  return std::make_shared<EvictedStayAlive>();
}
std::shared_ptr<FaultHooks> graphs_evicted_in_flight() {
  return std::make_shared<EvictedInFlight>();
}
std::shared_ptr<FaultHooks> executables_kept_in_flight() { return graphs_evicted_in_flight(); }
std::shared_ptr<FaultHooks> workspace_overrun() {
  return std::make_shared<WrongKernel>(WrongKernel::In::captures, &write_one_more);
}
std::shared_ptr<FaultHooks> workspace_not_initialised() {
  return std::make_shared<WrongKernel>(WrongKernel::In::captures, &read_unwritten);
}
std::shared_ptr<FaultHooks> threads_not_ordered() {
  return std::make_shared<WrongKernel>(WrongKernel::In::all_steps, &race);
}
std::shared_ptr<FaultHooks> eager_workspace_overrun() {
  return std::make_shared<WrongKernel>(WrongKernel::In::eager_steps, &write_one_more);
}
std::shared_ptr<FaultHooks> graph_lookup_without_length() {
  return std::make_shared<LookupWithoutLength>();
}

}  // namespace graphproof::faults

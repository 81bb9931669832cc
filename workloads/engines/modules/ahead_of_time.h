// What engines have in common that capture the parts of a model ahead of time, each as a forward
// and a backward graph in one pool, from a schedule: transformer_engine and callables. What they do
// differently is in Ways; their contracts stand in their own headers.
//
// Eager steps come first and tell which parts are called with what; without any, one forward and
// backward is rehearsed and put back. Right before step number warmup_steps everything is warmed up
// and captured, in the order of the schedule; that step and all later ones replay.
#pragma once

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "workloads/engines/capture/engine.h"
#include "workloads/engines/capture/optimizer_graph.h"
#include "workloads/engines/modules/module_graphs.h"
#include "workloads/engines/modules/part_chain.h"
#include "workloads/engines/modules/speed_floor.h"
#include "workloads/forward/module_runner.h"
#include "workloads/pipeline/pipeline_order.h"

namespace graphproof::engines {

/// What a rank runs in a step: `stage.microbatches` are those that get graphs of their own. A call
/// of microbatch m replays graph m modulo these.
struct CapturedSchedule {
  order::Stage stage;
  std::vector<std::vector<std::int64_t>> layers;  // of each chunk, as ModuleCall::layer counts them
  /// Layer by layer (order::layer_order), every layer an entry of its own; `weight_gradients`: and
  /// so are its delayed ones.
  bool by_layer = false, weight_gradients = false;
};

class AheadOfTime final : public Engine, public workloads::ModuleRunner {
 public:
  struct Ways {
    bool one_graph_a_layer =
        false;  // parts of a layer that follow each other go into one graph (part_chain.h)
    /// Graphs share static inputs as order::input_buffers() says, and gradients of outputs, by
    /// signature. Otherwise each has its own, and results keep their memory for good.
    bool shared_memory = false;
    /// Warm-up passes for so many eager steps of so many microbatches, of which so many are
    /// captured.
    std::int64_t (*warm_up_passes)(std::int64_t warmup_steps, std::int64_t microbatches,
                                   std::int64_t captured_microbatches) = nullptr;
    /// A pass goes over the schedule; otherwise each graph has all its passes before the next one.
    bool passes_over_schedule = false;
    ModuleGraphs::Ways graphs;  // without memory, which the engine gives
  };

  /// Throws std::invalid_argument for a step with the plain RNG tracker and for pools other than
  /// one.
  AheadOfTime(const EngineConfig& config, capture::Device& device, c10::Stream stream,
              workloads::TrainStep& step, Observer* observer, CapturedSchedule schedule, Ways ways);
  ~AheadOfTime() override;

  void step(const workloads::Batch& batch, double learning_rate) override;
  void floor_step(const workloads::Batch& batch, double learning_rate) override;
  /// A step whose forward and backward are `work`, which calls modules through run(): for schedules
  /// that are not TrainStep's. The optimizer is the caller's. `work` is called twice where it is
  /// rehearsed.
  void run_step(const std::function<void()>& work);
  void evaluate(const workloads::Batch& batch) override;
  std::vector<NamedTensor> outputs() override;
  at::Tensor losses() override;
  Counters counters() const override;
  void drop_graphs() override;

  /// Called by the model's parts, between the two ends of a step.
  std::vector<at::Tensor> run(const workloads::ModuleCall& call,
                              const std::vector<at::Tensor>& inputs,
                              const std::vector<at::Tensor>& parameters,
                              const workloads::ModuleBody& body) override;
  void run_weight_gradients(const workloads::ModuleCall& call,
                            const std::function<void()>& body) override;
  bool captures_parts() const override { return true; }
  workloads::ModuleRunner* module_runner() override { return this; }

 private:
  /// A chain and its graphs, by captured microbatch.
  struct Callable {
    std::unique_ptr<PartChain> chain;
    std::vector<std::unique_ptr<ModuleGraphs>> graphs;
    const Callable* fed_by = nullptr;  // whose only result is its only input
    std::vector<std::pair<workloads::ModuleKind, std::function<void()>>>
        weight_gradients;  // of parts that leave some for later
  };
  using Chunk = std::vector<Callable*>;  // in the order of the forward
  struct Part {
    Callable* callable = nullptr;
    std::size_t index = 0;
  };

  std::vector<at::Tensor> note(const workloads::ModuleCall& call,
                               const std::vector<at::Tensor>& inputs,
                               const std::vector<at::Tensor>& parameters,
                               const workloads::ModuleBody& body);
  Part part_of(const workloads::ModuleCall& call) const;
  void capture(const std::function<void()>& work);
  std::vector<Chunk> chunks() const;
  std::vector<SpeedFloor::Chain> floor_chains() const;
  std::vector<double> order() const;
  void make_graphs(const std::vector<Chunk>& chunks, const std::vector<double>& order);
  void warm_up(const std::vector<Chunk>& chunks, const std::vector<double>& order,
               std::int64_t passes) const;
  at::Tensor output_gradient(const std::string& owner, std::size_t index, const at::Tensor& output);
  void forget();

  EngineConfig config_;
  capture::Device& device_;
  c10::Stream stream_;
  workloads::TrainStep& step_;
  Observer silent_;
  Observer& observer_;
  CaptureParts parts_;
  OptimizerGraph optimizer_;
  CapturedSchedule schedule_;
  Ways ways_;
  std::array<bool, workloads::kModuleKinds.size()> captured_kinds_{};
  std::map<std::int64_t, std::vector<std::unique_ptr<Callable>>>
      layers_;  // by layer, in the order of the forward
  PoolOrder pool_;
  std::map<std::string, at::Tensor> output_gradients_;  // by owner, index and signature
  std::vector<NamedTensor> step_statics_, step_outputs_;
  std::unique_ptr<SpeedFloor> floor_;
  bool captured_ = false, capturing_ = false, dropped_ = false, at_floor_ = false;
  std::int64_t earlier_replays_ = 0;
  Counters counters_;
};

/// The stage of a step's layout: one microbatch for all at pipeline size 1, save layer by layer, as
/// upstream captures.
CapturedSchedule captured_schedule(workloads::TrainStep& step);

}  // namespace graphproof::engines

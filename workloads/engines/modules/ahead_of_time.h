// The common part of transformer_engine and callables, the engines that capture the parts of a
// model ahead of time from a schedule, each part as a forward and a backward graph in one pool.
// CapturePolicy holds their differences; their contracts are in their own headers.
//
// The eager steps come first and show which parts are called with which arguments. Without an eager
// step, one forward and backward is rehearsed and its effects are undone. Immediately before step
// number warmup_steps everything is warmed up and captured, in the order of the schedule. That step
// and all later ones replay.
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
#include "workloads/engines/modules/captured_parts.h"
#include "workloads/engines/modules/module_graphs.h"
#include "workloads/engines/modules/part_chain.h"
#include "workloads/engines/modules/speed_floor.h"
#include "workloads/forward/module_runner.h"
#include "workloads/pipeline/pipeline_order.h"

namespace graphproof::engines {

/// What a rank runs in a step. `stage.microbatches` counts the microbatches that get their own
/// graphs; a call of microbatch m replays graph m modulo that number.
struct CapturedSchedule {
  order::Stage stage;
  std::vector<std::vector<std::int64_t>> layers;  // by chunk; numbered as ModuleCall::layer
  /// by_layer: the schedule is order::layer_order(), with an entry for each layer.
  /// weight_gradients: the delayed weight gradients of a layer have their own entry.
  bool by_layer = false, weight_gradients = false;
};

/// The engine; used by one thread. A policy makes it transformer_engine or callables.
class AheadOfTime final : public Engine, public workloads::ModuleRunner {
 public:
  /// What the two engines do differently.
  struct CapturePolicy {
    /// Consecutive parts of a layer go into one graph (part_chain.h).
    bool one_graph_a_layer = false;
    /// Graphs share static inputs as order::input_buffers() specifies, and gradients of outputs by
    /// signature. Otherwise each graph has its own, and its results keep their memory.
    bool shared_memory = false;
    /// Returns the number of warm-up passes.
    std::int64_t (*warm_up_passes)(std::int64_t warmup_steps, std::int64_t microbatches,
                                   std::int64_t captured_microbatches) = nullptr;
    /// Each warm-up pass runs the whole schedule; otherwise each graph runs all its passes before
    /// those of the next graph.
    bool passes_over_schedule = false;
    ModuleGraphs::CapturePolicy graphs;  // without memory, which the engine provides
  };

  /// Throws std::invalid_argument for a step with the plain RNG tracker and for more than one pool.
  AheadOfTime(const EngineConfig& config, capture::Device& device, c10::Stream stream,
              workloads::TrainStep& step, Observer* observer, CapturedSchedule schedule,
              CapturePolicy policy);
  ~AheadOfTime() override;

  void step(const workloads::Batch& batch, double learning_rate) override;
  void floor_step(const workloads::Batch& batch, double learning_rate) override;
  /// A step whose forward and backward are `work`, which calls modules through run(): for schedules
  /// other than TrainStep's. The caller runs the optimizer. `work` runs twice if it is rehearsed.
  void run_step(const std::function<void()>& work);
  void evaluate(const workloads::Batch& batch) override;
  std::vector<NamedTensor> outputs() override;
  at::Tensor losses() override;
  Counters counters() const override;
  void drop_graphs() override;

  /// Called by the parts of the model, during a step.
  std::vector<at::Tensor> run(const workloads::ModuleCall& call,
                              const std::vector<at::Tensor>& inputs,
                              const std::vector<at::Tensor>& parameters,
                              const workloads::ModuleBody& body) override;
  void run_weight_gradients(const workloads::ModuleCall& call,
                            const std::function<void()>& body) override;
  bool captures_parts() const override { return true; }
  workloads::ModuleRunner* module_runner() override { return this; }

 private:
  /// A chain of parts, and its graphs by captured microbatch.
  struct Callable {
    std::unique_ptr<PartChain> chain;
    std::vector<std::unique_ptr<ModuleGraphs>> graphs;
    const Callable* predecessor = nullptr;  // its only result is the only input of this one
    /// Of the parts that defer weight gradients: what adds them.
    std::vector<std::pair<workloads::ModuleKind, std::function<void()>>> weight_gradients;
  };
  using Chunk = std::vector<Callable*>;  // in the order of the forward
  /// Part number `index` of the chain of `callable`; null for a part without graphs.
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
  void discard_graphs();

  EngineConfig config_;
  capture::Device& device_;
  c10::Stream stream_;
  workloads::TrainStep& step_;
  Observer silent_;
  Observer& observer_;
  CaptureParts parts_;
  OptimizerGraph optimizer_;
  CapturedSchedule schedule_;
  CapturePolicy policy_;
  const CapturedParts captured_parts_;
  /// By layer, in the order of the forward.
  std::map<std::int64_t, std::vector<std::unique_ptr<Callable>>> layers_;
  PoolOrder pool_;
  std::map<std::string, at::Tensor> output_gradients_;  // by owner, index and signature
  std::vector<NamedTensor> step_statics_, step_outputs_;
  std::unique_ptr<SpeedFloor> floor_;
  bool captured_ = false, capturing_ = false, dropped_ = false, at_floor_ = false;
  std::int64_t earlier_replays_ = 0;
  Counters counters_;
};

/// What the rank of `step` runs. At pipeline size 1 one captured microbatch serves all, unless the
/// step runs layer by layer, as in Megatron-LM.
CapturedSchedule captured_schedule(workloads::TrainStep& step);

}  // namespace graphproof::engines

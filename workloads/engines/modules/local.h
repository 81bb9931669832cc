// impl local: a forward and a backward graph of each captured module, as Megatron-LM's local
// graphs; what lies between the modules runs eagerly.
//
// Contract:
// - `modules` says which parts are captured (workloads/forward/module_runner.h has the cuts); empty
// is the whole layer. The cuts
//   follow the guide. Upstream's code captures the whole layer for attn or mlp as well (rules R132,
//   R134, R135): that difference is a hazard row, not an option here.
// - The first step runs eagerly and is recorded: which modules are called, with what, fed by whose
// outputs, and in which
//   order their forwards and backwards run. At its end, after the gradients are reduced, the graphs
//   are captured in that order into one pool (`pool`: or one for each outstanding microbatch, or
//   each graph). Every later step replays.
// - `warmup_steps` is upstream's for local: eager passes of each module right before its capture,
// whose effects on random
//   numbers, gradients, masks and counters are put back. Eager steps are one, whatever it says.
// - A module has as many pairs of graphs as microbatches were outstanding in it at once, and no
// more: with one microbatch
//   after another that is one pair, replayed once for each. In a pipeline, where microbatches
//   overlap, each microbatch has a pair of its own on every stage, as upstream has (it reuses where
//   the pipeline size is 1): the pool's order is then the schedule's, and all stages capture
//   equally often. A replayed step needs 2 x captured modules x microbatches launches,
//   Counters::launches_per_step.
// - An output that one other captured module alone takes is that one's static input: they have one
// memory, and nothing is
//   copied. Upstream once asked for this with cuda_graph_share_io_buffers; its code does it by
//   itself now, and so does this.
// - With fp8_weights a graph reads on the device whether its microbatch is a step's first. That
// flag is written when a call finds
//   that it changed, which is in the first captured part of a chunk, outside the graphs.
//   (Upstream's code writes it in the first layer of a chunk alone, and so never where that layer
//   is not captured.)
// - The batch is read where it is; no static copy, because embedding and loss are eager.
// - outputs() aliases the step's static buffers. module_graphs.h says who owns what inside.
// - evaluate() runs eagerly. (Upstream's code replays the training graphs there, dropout as
// captured: rule R176, a hazard.)
// - A call whose inputs differ from the captured ones, more outstanding microbatches than recorded,
// a launch in another
//   order than its pool allows, and a module called without gradients in a training step are errors
//   that say what, got, want, why, next.
// - A failed capture throws capture::DeviceError; graphs made so far are dropped, and the next step
// records again.
// - Refuses the plain RNG tracker (rule R154), inputs that no graph can take, and step() after
// drop_graphs().
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "workloads/engines/capture/engine.h"
#include "workloads/engines/capture/optimizer_graph.h"
#include "workloads/engines/modules/module_graphs.h"
#include "workloads/engines/modules/speed_floor.h"
#include "workloads/forward/module_runner.h"

namespace graphproof::engines {

class Local final : public Engine, public workloads::ModuleRunner {
 public:
  /// Throws std::invalid_argument for a step with the plain RNG tracker.
  Local(const EngineConfig& config, capture::Device& device, c10::Stream stream,
        workloads::TrainStep& step, Observer* observer);
  ~Local() override;

  void step(const workloads::Batch& batch, double learning_rate) override;
  void floor_step(const workloads::Batch& batch, double learning_rate) override;
  /// A step whose forward and backward are `work`, which calls modules through run(): for schedules
  /// that are not TrainStep's. The optimizer is the caller's.
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
  bool captures_parts() const override { return true; }
  workloads::ModuleRunner* module_runner() override { return this; }

 private:
  struct Entry {
    ModuleGraphs* graphs;
    bool backward;
  };
  /// An output that was handed out in the recorded step. Weak, so that recording keeps no
  /// activation alive, and no other tensor can take its address.
  struct Output {
    c10::weak_intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl> tensor;
    ModuleGraphs* producer;
    std::size_t index;
  };
  using Slots =
      std::vector<std::unique_ptr<ModuleGraphs>>;  // of one module, by outstanding microbatch
  class RecordBackward;

  std::vector<at::Tensor> record(const workloads::ModuleCall& call,
                                 const std::vector<at::Tensor>& inputs,
                                 const std::vector<at::Tensor>& parameters,
                                 const workloads::ModuleBody& body);
  Slots& slots(const workloads::ModuleCall& call);
  bool graphs_for_each_microbatch() const;
  ModuleGraphs& idle_graphs(const workloads::ModuleCall& call,
                            const std::vector<at::Tensor>& inputs);
  void recorded_backward(ModuleGraphs& graphs);
  void begin_step();
  void create();
  ModuleGraphs::Place place_for(const ModuleGraphs& graphs);
  void forget();
  std::vector<SpeedFloor::Chain> chains() const;
  template <class Visit>
  void for_each_graphs(Visit visit) const;

  EngineConfig config_;
  capture::Device& device_;
  c10::Stream stream_;
  workloads::TrainStep& step_;
  Observer silent_;
  Observer& observer_;
  CaptureParts parts_;
  OptimizerGraph optimizer_;
  std::array<bool, workloads::kModuleKinds.size()> captured_kinds_{};
  std::array<std::vector<Slots>, workloads::kModuleKinds.size()> modules_;  // by kind and layer
  std::vector<std::unique_ptr<PoolOrder>> pools_;
  std::vector<Entry> record_;
  std::vector<Output> recorded_outputs_;
  std::vector<ModuleGraphs*> in_order_;  // of the captures of their forwards
  std::vector<NamedTensor> step_statics_, step_outputs_;
  std::unique_ptr<SpeedFloor> floor_;
  bool created_ = false, creating_ = false, evaluating_ = false, dropped_ = false,
       at_floor_ = false;
  std::optional<bool> told_first_;  // in this step, of its microbatches
  std::int64_t recorded_launches_ = 0, earlier_replays_ = 0;
  Counters counters_;
};

std::unique_ptr<Engine> make_local(const EngineConfig& config, capture::Device& device,
                                   c10::Stream stream, workloads::TrainStep& step,
                                   Observer* observer);

}  // namespace graphproof::engines

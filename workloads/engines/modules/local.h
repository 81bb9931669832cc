// impl local: a forward and a backward graph of each captured module, as in Megatron-LM's local
// implementation. What lies between the modules runs eagerly.
//
// Contract:
// - `modules` selects the parts that are captured (workloads/forward/module_runner.h lists them);
//   an empty list captures the whole layer. The parts are those of Megatron-LM's guide. Its code
//   captures the whole layer also for attn or mlp (rules R132, R134, R135); that difference is a
//   row of the hazard table and not an option here.
// - The first step runs eagerly and is recorded: which modules are called, with which arguments,
//   which outputs they consume, and the order of their forwards and backwards. At its end, after
//   the gradients are reduced, the graphs are captured in that order into one pool, or with `pool`
//   into one for each outstanding microbatch or each graph. Every later step replays.
// - `warmup_steps` has the meaning that it has for local in Megatron-LM: eager passes of each
//   module immediately before its capture. Their effects on random numbers, gradients, masks and
//   counters are undone. There is always exactly one eager step.
// - A module has as many pairs of graphs as microbatches were outstanding in it at the same time.
//   If the microbatches run one after another, that is one pair, replayed once for each. In a
//   pipeline, where microbatches overlap, each microbatch has its own pair on every stage, as in
//   Megatron-LM, which reuses graphs only at pipeline size 1. The order of the pool is then that of
//   the schedule, and all stages make equally many captures of the decoder. A replayed step needs
//   2 x captured modules x microbatches launches (Counters::launches_per_step).
// - The modules of a vision encoder, which the first stage alone has, are captured like others.
//   Those of a frozen one need one launch for each microbatch, because they have no backward.
// - The layers of multi-token prediction, which the last stage alone has, are captured like others.
// - An output that is consumed by exactly one captured module is the static input of that module:
//   the two share memory, and nothing is copied. (Megatron-LM had the option
//   cuda_graph_share_io_buffers for this; its current code always does it.)
// - With delayed fp8 scaling a graph holds the casts; the scales are updated outside the graphs, on
//   leaving the fp8 context of a microbatch, which therefore has to be entered at replays too.
// - With fp8_weights a graph reads on the device whether its microbatch is the first of a step. The
//   flag is written outside the graphs by the first call that finds it changed, in the first
//   captured part of a chunk. (Megatron-LM writes it only in the first layer of a chunk, and so
//   never if that layer is not captured.)
// - The batch is not copied, because embedding and loss are eager.
// - outputs() aliases the static buffers of the step. module_graphs.h describes the ownership of
//   the tensors inside.
// - evaluate() runs eagerly. (Megatron-LM's code replays the training graphs there, with dropout as
//   captured: rule R176, a hazard.)
// - A call whose inputs differ from the captured ones, more outstanding microbatches than recorded,
//   a launch in an order that its pool does not allow, and a module called without gradients in a
//   training step are errors, with what, got, want, why and next in their messages.
// - A failed capture throws capture::DeviceError. The graphs that were made so far are dropped, and
//   the next step records again.
// - Refuses the plain RNG tracker (rule R154), inputs that no graph can take, and step() after
//   drop_graphs().
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "workloads/engines/capture/engine.h"
#include "workloads/engines/capture/optimizer_graph.h"
#include "workloads/engines/modules/captured_parts.h"
#include "workloads/engines/modules/module_graphs.h"
#include "workloads/engines/modules/speed_floor.h"
#include "workloads/forward/module_runner.h"

namespace graphproof::engines {

/// The contract is above. Used by one thread.
class Local final : public Engine, public workloads::ModuleRunner {
 public:
  /// Throws std::invalid_argument for a step with the plain RNG tracker.
  Local(const EngineConfig& config, capture::Device& device, c10::Stream stream,
        workloads::TrainStep& step, Observer* observer);
  ~Local() override;

  void step(const workloads::Batch& batch, double learning_rate) override;
  void floor_step(const workloads::Batch& batch, double learning_rate) override;
  /// A step whose forward and backward are `work`, which calls modules through run(): for schedules
  /// other than TrainStep's. The caller runs the optimizer.
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
  bool captures_parts() const override { return true; }
  workloads::ModuleRunner* module_runner() override { return this; }

 private:
  /// One forward or backward of the recorded step.
  struct Entry {
    ModuleGraphs* graphs;
    bool backward;
  };
  /// An output that was returned in the recorded step. Weak, so that the recording keeps no
  /// activation alive, while no other tensor can get the same address.
  struct Output {
    c10::weak_intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl> tensor;
    ModuleGraphs* producer;
    std::size_t index;
  };
  /// The graphs of one module, by outstanding microbatch.
  using Slots = std::vector<std::unique_ptr<ModuleGraphs>>;
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
  void discard_recording();
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
  const CapturedParts captured_parts_;
  std::array<std::vector<Slots>, workloads::kModuleKinds.size()> modules_;  // by kind and layer
  std::vector<std::unique_ptr<PoolOrder>> pools_;
  std::vector<Entry> record_;
  std::vector<Output> recorded_outputs_;
  std::vector<ModuleGraphs*> in_order_;  // in the order in which their forwards were captured
  std::vector<NamedTensor> step_statics_, step_outputs_;
  std::unique_ptr<SpeedFloor> floor_;
  bool created_ = false, creating_ = false, evaluating_ = false, dropped_ = false,
       at_floor_ = false;
  std::optional<bool> first_microbatch_flag_;  // as this step has set it last
  std::int64_t recorded_launches_ = 0, earlier_replays_ = 0;
  Counters counters_;
};

/// See make_engine().
std::unique_ptr<Engine> make_local(const EngineConfig& config, capture::Device& device,
                                   c10::Stream stream, workloads::TrainStep& step,
                                   Observer* observer);

}  // namespace graphproof::engines

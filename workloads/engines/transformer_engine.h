// impl transformer_engine: a forward and a backward graph of each layer's captured modules for each microbatch of the
// schedule, captured ahead of time, as Megatron-LM captures through Transformer Engine's make_graphed_callables.
//
// Contract:
// - `modules` says which parts of a layer are captured; empty is the whole layer. Those of one layer are one graph
//   (part_chain.h); what lies between runs eagerly, before and behind it.
// - Steps before number `warmup_steps` are eager training steps. Right before that step everything is captured, from the
//   schedule alone: order::chunk_order() says in which order, order::input_buffers() which slots share static inputs. That
//   step and all later ones replay. The eager steps tell the layers' arguments; without any, one forward and backward is
//   rehearsed and put back.
// - At pipeline size 1 one microbatch is captured and its graphs serve every microbatch; otherwise each has its own. A call
//   of microbatch m replays graph m modulo the captured ones.
// - Before the captures come warm_up_passes() passes over the schedule, on static inputs of ones and with NaN for the
//   gradients of outputs: upstream hands in uninitialised memory there. What they change is put back: losses, gradients,
//   masks, ledgers, counters, random numbers.
// - Static inputs and the gradients of outputs lie outside the pool; slots share them by signature. Every replay copies
//   into them what does not lie there already. Results lie in the one pool of all graphs: an output until its own backward
//   was replayed, an input's gradient until the layer below or, of a chunk's first layer, the next backward of another
//   entry of the order has run.
// - Gradients of parameters leave the graph as copies, and autograd adds them to .grad, so hooks of accumulators run.
//   Parameters that the outputs don't depend on take no part.
// - A call without gradients, as in evaluation, runs eagerly.
// - The batch is read where it is: embedding and loss are eager. outputs() aliases the step's static buffers.
// - A call whose inputs differ from the captured ones, a launch in another order than the captures, and parts called out of
//   turn are errors that say what, got, want, why, next.
// - A failed capture throws capture::DeviceError; graphs made so far are dropped, nothing is left marked as capturing, and
//   the next step tries again.
// - Refuses the plain RNG tracker (rule B08), inputs that no graph can take, a model without any of `modules`, pools other
//   than one, and step() after drop_graphs().
#pragma once

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "workloads/engines/engine.h"
#include "workloads/engines/module_graphs.h"
#include "workloads/engines/part_chain.h"
#include "workloads/module_runner.h"
#include "workloads/order/pipeline_order.h"

namespace graphproof::engines {

/// What a rank runs in a step: `stage.microbatches` are those that get graphs of their own.
struct CapturedSchedule {
  order::Stage stage;
  std::vector<std::vector<std::int64_t>> layers;  // of each chunk, as ModuleCall::layer counts them
};

/// Megatron-LM's: as many as bring the eager runs of a layer to ten, steps of training included, and one at least.
std::int64_t warm_up_passes(std::int64_t warmup_steps, std::int64_t microbatches, std::int64_t captured_microbatches);

class TransformerEngine final : public Engine, public workloads::ModuleRunner {
 public:
  /// Throws std::invalid_argument for a step with the plain RNG tracker and for pools other than one.
  TransformerEngine(const EngineConfig& config, capture::Device& device, c10::Stream stream, workloads::TrainStep& step,
                    Observer* observer, CapturedSchedule schedule);
  ~TransformerEngine() override;

  void step(const workloads::Batch& batch, double learning_rate) override;
  /// A step whose forward and backward are `work`, which calls modules through run(): for schedules that are not
  /// TrainStep's. The optimizer is the caller's. `work` may be called twice, see above.
  void run_step(const std::function<void()>& work);
  std::vector<NamedTensor> outputs() override;
  at::Tensor losses() override;
  Counters counters() const override;
  void drop_graphs() override;

  /// Called by the model's parts, between the two ends of a step.
  std::vector<at::Tensor> run(const workloads::ModuleCall& call, const std::vector<at::Tensor>& inputs,
                              const std::vector<at::Tensor>& parameters, const workloads::ModuleBody& body) override;

 private:
  /// A chain and its graphs, by captured microbatch.
  struct Callable {
    std::unique_ptr<PartChain> chain;
    std::vector<std::unique_ptr<ModuleGraphs>> graphs;
  };
  using Chunk = std::vector<Callable*>;  // in the order of the forward
  struct Part {
    Callable* callable = nullptr;
    std::size_t index = 0;
  };

  std::vector<at::Tensor> note(const workloads::ModuleCall& call, const std::vector<at::Tensor>& inputs,
                               const std::vector<at::Tensor>& parameters, const workloads::ModuleBody& body);
  Part part_of(const workloads::ModuleCall& call) const;
  void capture(const std::function<void()>& work);
  std::vector<Chunk> chunks() const;
  void make_graphs(const std::vector<Chunk>& chunks, const std::vector<double>& order);
  void warm_up(const std::vector<Chunk>& chunks, const std::vector<double>& order, std::int64_t passes) const;
  at::Tensor output_gradient(std::size_t index, const at::Tensor& output);
  void forget();

  EngineConfig config_;
  capture::Device& device_;
  c10::Stream stream_;
  workloads::TrainStep& step_;
  Observer silent_;
  Observer& observer_;
  CaptureParts parts_;
  CapturedSchedule schedule_;
  std::array<bool, workloads::kModuleKinds.size()> captured_kinds_{};
  std::map<std::int64_t, std::vector<std::unique_ptr<Callable>>> layers_;  // by layer, in the order of the forward
  PoolOrder pool_;
  std::map<std::string, at::Tensor> output_gradients_;  // by index and signature
  std::vector<NamedTensor> step_statics_, step_outputs_;
  bool captured_ = false, capturing_ = false, dropped_ = false;
  std::int64_t earlier_replays_ = 0;
  Counters counters_;
};

std::unique_ptr<Engine> make_transformer_engine(const EngineConfig& config, capture::Device& device, c10::Stream stream,
                                                workloads::TrainStep& step, Observer* observer);

}  // namespace graphproof::engines

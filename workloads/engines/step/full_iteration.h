// impl full_iteration: one graph holds forward and backward of all microbatches, without the
// optimizer, like Megatron-LM's full-iteration wrapper around its training schedule.
//
// Contract:
// - Every call first copies each microbatch into static inputs, on a side stream that waits for the
//   current stream and that the current stream then waits for. The first call clones the
//   microbatches instead. The caller's tensors are not kept.
// - A call counter selects what happens. Calls before number `warmup_steps` run eagerly. Call
//   number `warmup_steps` waits for the device, registers every state of the RNG tracker and
//   captures, which runs nothing. That call and all later ones replay.
// - The graph holds zeroing, forward, backward and the data parallel mean. The optimizer runs after
//   each replay, eagerly or from its own graph in the same pool (optimizer_graph.h), and reads the
//   learning rate that the host wrote for that call.
// - evaluate() has its own graph, static inputs and call counter: evaluations before number
//   `warmup_steps` run eagerly, that evaluation captures into its own pool, and it and all later
//   ones replay.
// - If the step runs layer by layer (ModelConfig::overlap_ep_comm), the stream of the exchanges
//   forks and joins inside the graph, and a step that would end with weight gradients pending is
//   refused.
// - With delayed fp8 scaling the graphs hold the reductions and updates of the scales too.
// - With fp8_weights the graphs hold the rounding in their first microbatch only, so a replay needs
//   no flag.
// - The capture mode is thread-local unless the configuration sets another.
// - outputs() are the tensors stored at construction, which alias the static buffers of the step:
//   losses that are read later are those of the latest replay.
// - With limited buffers of experts the host waits after each replay for the flag of paged_stash.h,
//   may run the step again eagerly, and then drops the graph, so that the next step captures again.
// - reset() drops the graph of training and sets its counter to zero, so warm-up and capture
//   repeat.
// - A failed capture throws capture::DeviceError; the engine never falls back to eager by itself.
// - Refuses the plain RNG tracker (rule B08), a batch of another shape, and step() after
//   drop_graphs().
#pragma once

#include "workloads/engines/capture/engine.h"
#include "workloads/engines/capture/optimizer_graph.h"
#include "workloads/engines/step/paged_stash.h"
#include "workloads/engines/step/static_inputs.h"
#include "workloads/engines/step/step_graph.h"

namespace graphproof::engines {

/// The contract is above. Used by one thread.
class FullIteration final : public Engine {
 public:
  /// Throws std::invalid_argument for a step with the plain RNG tracker.
  FullIteration(const EngineConfig& config, capture::Device& device, c10::Stream stream,
                workloads::TrainStep& step, Observer* observer);

  void step(const workloads::Batch& batch, double learning_rate) override;
  void floor_step(const workloads::Batch& batch, double learning_rate) override;
  void evaluate(const workloads::Batch& batch) override;
  std::vector<NamedTensor> outputs() override { return results_; }
  at::Tensor losses() override;
  Counters counters() const override;
  void drop_graphs() override;
  /// Waits for the last replay, drops the graph, sets the call counter to zero.
  void reset();

 private:
  EngineConfig config_;
  c10::Stream stream_;
  workloads::TrainStep& step_;
  StaticInputs inputs_, evaluation_inputs_;
  StepGraph graph_, evaluation_graph_;
  Observer silent_;
  OptimizerGraph optimizer_;
  PagedStash stash_;
  std::vector<NamedTensor> results_;
  Counters counters_;
  std::int64_t calls_ = 0;  // since construction or reset
  std::int64_t evaluations_ = 0;
  bool dropped_ = false;
};

/// See make_engine().
std::unique_ptr<Engine> make_full_iteration(const EngineConfig& config, capture::Device& device,
                                            c10::Stream stream, workloads::TrainStep& step,
                                            Observer* observer);

}  // namespace graphproof::engines

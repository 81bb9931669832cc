// impl full_iteration: forward and backward of all microbatches in one graph, the optimizer outside
// it, as Megatron-LM's full-iteration wrapper around its training schedule.
//
// Contract:
// - Every call first copies each microbatch into static inputs, on a side stream joined both ways;
// the first call
//   clones them. The caller's tensors are not kept.
// - A call counter decides: calls before number `warmup_steps` run eagerly; that call waits for the
// device, registers
//   every state of the RNG tracker and captures, which runs nothing; it and all later calls replay.
// - The graph holds zeroing, forward, backward and the data parallel mean. The optimizer runs after
// each replay, eagerly
//   or from a graph of its own in the same pool (optimizer_graph.h), and reads the learning rate
//   that the host wrote for that call.
// - evaluate() has a graph, static inputs and a call counter of its own: evaluations before number
// `warmup_steps` run
//   eagerly, that one captures into a pool of its own, it and all later ones replay.
// - Layer by layer (ModelConfig::overlap_ep_comm) the exchange's stream forks and joins inside the
// graph, and a step that would end with
//   weight gradients owed is refused.
// - With fp8_weights the graphs hold the rounding in their first microbatch and none in the others:
// nothing is told at a replay.
// - Capture mode is thread-local unless the configuration says otherwise.
// - outputs() are the tensors stored at construction and alias the step's static buffers: losses
// read later are those
//   of the latest replay.
// - reset() drops the graph of training and sets its counter to zero, so warm-up and capture
// repeat.
// - A failed capture throws capture::DeviceError; the engine never falls back to eager by itself.
// - Refuses the plain RNG tracker (rule B08), a batch of another shape, and step() after
// drop_graphs().
#pragma once

#include "workloads/engines/capture/engine.h"
#include "workloads/engines/capture/optimizer_graph.h"
#include "workloads/engines/step/static_inputs.h"
#include "workloads/engines/step/step_graph.h"

namespace graphproof::engines {

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
  std::vector<NamedTensor> results_;
  Counters counters_;
  std::int64_t calls_ = 0;  // since construction or reset
  std::int64_t evaluations_ = 0;
  bool dropped_ = false;
};

std::unique_ptr<Engine> make_full_iteration(const EngineConfig& config, capture::Device& device,
                                            c10::Stream stream, workloads::TrainStep& step,
                                            Observer* observer);

}  // namespace graphproof::engines

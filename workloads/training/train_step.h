// One training step of the reference model on one rank: model, gradients, optimizer, random
// numbers. An engine decides what of it is captured; this file knows no graphs.
//
// Letters: L layers, S sequence length (tokens), B microbatch size (sequences), H hidden, V
// vocabulary, M microbatches, T tensor parallel size, D data parallel size, E experts of a layer.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fixtures/device/device.h"
#include "fixtures/device/rng_tracker.h"
#include "fixtures/tensors/named_tensor.h"
#include "workloads/config/model_config.h"
#include "workloads/faults/hooks/fault_hooks.h"
#include "workloads/forward/module_runner.h"
#include "workloads/forward/module_runs.h"
#include "workloads/parameters/parameters.h"
#include "workloads/pipeline/pipeline_schedule.h"
#include "workloads/training/data.h"
#include "workloads/training/gradient_reduction.h"
#include "workloads/training/host_checks.h"
#include "workloads/training/optimizer.h"

namespace graphproof::workloads {

using fixtures::NamedTensor;

class TrainStep {
 public:
  /// Builds parameters from (seed, tensor name) as the shard of the full tensor that `layout`
  /// holds. Create it with the stream current on which it will run or be captured: gradient
  /// accumulators keep their creation stream. `faults`: of a planted fault, or null. Throws
  /// std::invalid_argument where the layout does not divide the model (rule G001 refuses it
  /// earlier), and for experts together with tensor parallelism (R247).
  TrainStep(const ModelConfig& config, const Layout& layout, capture::Device& device,
            std::uint64_t seed, std::shared_ptr<faults::FaultHooks> faults = nullptr,
            fixtures::RngBackend backend = fixtures::RngBackend::graph_safe);
  ~TrainStep();

  /// Enqueues on the current stream: zero gradients, forward and backward of the M microbatches, in
  /// a pipeline in 1F1B order, interleaved where a stage has several chunks, with what stages send
  /// each other (workloads/training/pipeline.h); then their reduction (gradient_reduction.h), and
  /// of tied embeddings the sum of first and last stage. With overlap_param_gather the parameters
  /// are gathered first. Microbatches may be shorter than the model's sequences (lengths.h) in a
  /// dense model on one stage that cuts no sequence, without dropout and learned positions.
  /// Capturable, and without host synchronisation, save with the host's checks (host_checks.h),
  /// which may throw.
  void forward_backward(const Batch& batch);
  /// Enqueues on the current stream: the forwards of the M microbatches without gradients and
  /// dropout, in a pipeline in the order of the training step's forwards. Leaves parameters,
  /// gradients, optimizer, masks and random numbers alone; rounded weights are made again in the
  /// first of the M. Capturable, and without host synchronisation.
  void evaluate(const Batch& batch);
  /// [M] fp32 out, static buffer: evaluate()'s, as losses() is forward_backward()'s.
  at::Tensor evaluation_losses();
  /// Enqueues Optimizer::step(). The rate is read from learning_rate() on the device.
  void optimizer_step();

  at::Tensor learning_rate();  // [] fp32 in, static
  /// Enqueues learning_rate() = `rate` on the current stream. Before a step, never inside a
  /// capture.
  void learning_rate(double rate);
  std::vector<NamedTensor>
  parameters();  // "param:NAME"; with overlap_param_gather old where other ranks own them
  const std::vector<Shard>& shards() const;  // which part of the full tensor each is, same order
  std::vector<NamedTensor>
  gradients();  // "grad:NAME" fp32, static buffers, same order as parameters()
  const std::vector<Updated>& updated() const;  // Optimizer::updated()
  /// GradientReduction::gather(), on the current stream.
  void gather_gradients();
  std::vector<NamedTensor> optimizer_state();  // Optimizer::state()
  /// [M] fp32 out, static buffer; each the mean over a microbatch's B*S tokens, zero on all stages
  /// but the last.
  at::Tensor losses();
  std::vector<NamedTensor>
  masks();  // "mask:M.LAYER.SITE", uint8; of the last step; empty without dropout
  /// probes() of RecomputeLedger, ExpertLedger, ScheduleLedger and Fp8Weights: what the last step
  /// wrote about itself, completely, static; of fp16 "loss_scale:applied" [] fp32, what the step's
  /// loss was multiplied by.
  std::vector<NamedTensor> ledgers();
  /// Fp8Weights::first(): undefined without fp8_weights.
  at::Tensor first_microbatch();
  at::Tensor skipped();  // Optimizer::skipped()
  const HostChecks& host_checks() const;
  const GradientReduction& reduction() const;
  at::Tensor recompute_counter();  // RecomputeLedger::counts()
  at::Tensor dropped();  // [L] int64: assignments without room in the last step; undefined if dense
  at::Tensor
  layer_counter();  // [L/pp] int64: forwards run by each layer here, in device memory outside pools
  /// What the host is enqueuing now: a forward or backward, or a transfer to the one that takes it;
  /// nothing between them.
  std::optional<order::Work> running() const;
  /// What the host is in: forward_backward(), optimizer_step() or neither.
  enum class Inside { neither, passes, optimizer };
  Inside inside() const;
  fixtures::RngTracker& rng();
  const ModelConfig& config() const;
  const Layout& layout() const;
  /// The planted fault's hooks, the engine's too; sound ones where none is planted.
  faults::FaultHooks& faults() const;

  /// Lets `runner` run the parts of the model from now on; null gives them back. It outlives its
  /// last forward_backward().
  void module_runner(ModuleRunner* runner);
  /// Of the part of `call`, in all microbatches since this was made, while it had a runner.
  RunCount module_runs(const ModuleCall& call) const;
  /// Fp8Weights::set_first_microbatch(); without effect where no weights are rounded. By an engine
  /// that captures parts, before it replays the forward of one.
  void set_first_microbatch(bool first);
  /// Told by an engine around a capture: whether the calls between are recorded instead of run. The
  /// making of rounded weights and planted faults look at it.
  void recording(bool on);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace graphproof::workloads

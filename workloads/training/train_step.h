// One training step of the reference model on one rank: model, gradients, optimizer, random
// numbers. An engine decides which part of it is captured; this file knows nothing of graphs.
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
#include "workloads/forward/expert_buffers.h"
#include "workloads/forward/module_runner.h"
#include "workloads/forward/module_runs.h"
#include "workloads/parameters/parameters.h"
#include "workloads/parameters/placed_buffer.h"
#include "workloads/pipeline/pipeline_schedule.h"
#include "workloads/training/data.h"
#include "workloads/training/gradient_reduction.h"
#include "workloads/training/host_checks.h"
#include "workloads/training/optimizer.h"

namespace graphproof::workloads {

using fixtures::NamedTensor;

class ActivationOffload;
struct CachedTokens;
struct ExpertChoices;

/// The step and all state that it owns. Used by one thread; autograd may run backwards on its own
/// threads.
class TrainStep {
 public:
  /// Draws the parameters from (seed, tensor name), as the shard of the full tensor that `layout`
  /// assigns to this rank. REQUIRES: the stream on which it will run or be captured is current,
  /// because gradient accumulators keep the stream of their creation. `faults` are the hooks of a
  /// planted fault, or null. Throws std::invalid_argument if the layout does not divide the model
  /// (rule G001 refuses that earlier).
  TrainStep(const ModelConfig& config, const Layout& layout, capture::Device& device,
            std::uint64_t seed, std::shared_ptr<faults::FaultHooks> faults = nullptr,
            fixtures::RngBackend backend = fixtures::RngBackend::graph_safe);
  ~TrainStep();

  /// Enqueues on the current stream: zeroing of the gradients, forward and backward of the M
  /// microbatches, the reduction of the gradients (gradient_reduction.h), and for tied embeddings
  /// the sum over the first and last stage. A pipeline runs in 1F1B order, interleaved if a stage
  /// has several chunks, with the transfers between stages (workloads/training/pipeline.h). With
  /// overlap_param_gather the parameters are gathered first. Microbatches may be shorter than the
  /// model's sequences (lengths.h) in a dense model on one stage without a split of sequences,
  /// dropout and learned positions. May be captured and does not wait for the device, except with
  /// the checks on the host (host_checks.h), which may throw. Throws std::invalid_argument for
  /// experts with tensor parallelism but without sequence parallelism (R247).
  void forward_backward(const Batch& batch);
  /// Enqueues on the current stream: the forwards of the M microbatches without gradients and
  /// dropout, in a pipeline in the order of the forwards of a training step. Does not change
  /// parameters, gradients, optimizer, masks and random numbers; the first of the M microbatches
  /// makes the rounded weights again. May be captured and does not wait for the device.
  void evaluate(const Batch& batch);
  /// Enqueues on the current stream, between steps: one step of inference, without gradients and
  /// dropout, and with the parameters as they are. Returns Gpt::logits() [N, V] fp32 of `tokens`:
  /// [N] int64 with `cached`, which keeps their keys, values and states; [B, S] int64 if it is
  /// null. `choices`: the experts of the N tokens, or of the B*S. Parts of the model run through
  /// `runner`, unless it is null. Changes nothing but the cache, the choices, the layer counter and
  /// the counts of experts. May be captured and does not wait for the device, except with a
  /// dropless dispatch other than flex. REQUIRES: rotary positions, one stage, sequences that are
  /// not split, and `choices` if the model has experts; `cached` and `choices` outlive the graphs
  /// that `runner` captures.
  at::Tensor infer(const at::Tensor& tokens, const CachedTokens* cached, ModuleRunner* runner,
                   ExpertChoices* choices = nullptr);
  /// Enqueues on the current stream, before the first infer() after a step: with
  /// overlap_param_gather the gather of the parameters that other ranks have updated, for which the
  /// next step would be the first to wait. Nothing otherwise. Never inside a capture.
  void gather_parameters();
  /// [M] fp32 out, static: the losses of evaluate().
  at::Tensor evaluation_losses();
  /// Enqueues Optimizer::step(), which reads learning_rate() on the device.
  void optimizer_step();

  at::Tensor learning_rate();  // [] fp32 in, static
  /// Enqueues learning_rate() = `rate` on the current stream. Called before a step, never inside a
  /// capture.
  void learning_rate(double rate);
  /// "param:NAME", the frozen ones last. With overlap_param_gather those that other ranks own are
  /// one step old.
  std::vector<NamedTensor> parameters();
  /// Which part of its full tensor each parameter is, in the same order.
  const std::vector<Shard>& shards() const;
  /// The flat buffers by which ranks reduce gradients ("gradients") and gather parameters
  /// ("parameters", with the distributed optimizer), where the layout chooses their places; none
  /// with BufferPlacement::by_allocator.
  const std::vector<BufferArena::Placed>& placed_buffers() const;
  /// The parameters that are not trained, and so have no gradient.
  const std::vector<NamedTensor>& frozen() const;
  /// "grad:NAME" fp32, static, of the others in the same order.
  std::vector<NamedTensor> gradients();
  const std::vector<Updated>& updated() const;  // Optimizer::updated()
  /// GradientReduction::gather(), on the current stream.
  void gather_gradients();
  /// Optimizer::state(), RouterBias::append_to() and fp8_state().
  std::vector<NamedTensor> optimizer_state();
  std::vector<NamedTensor> fp8_state();  // Fp8Scaling::state()
  /// [M] fp32 out, static: for each microbatch the mean over its B*S tokens; zero on all stages but
  /// the last.
  at::Tensor losses();
  /// "mask:M.LAYER.SITE" uint8, of the last step; empty without dropout.
  std::vector<NamedTensor> masks();
  /// The tensors of RecomputeLedger, ExpertLedger, ScheduleLedger and Fp8Weights, which every step
  /// writes completely. Static. With fp16 also "loss_scale:applied" [] fp32, the factor of the
  /// step's loss.
  std::vector<NamedTensor> ledgers();
  /// Fp8Weights::first(): undefined without fp8_weights.
  at::Tensor first_microbatch();
  at::Tensor skipped();  // Optimizer::skipped()
  const HostChecks& host_checks() const;
  const GradientReduction& reduction() const;
  at::Tensor recompute_counter();  // RecomputeLedger::counts()
  /// Null without cpu_offload.
  ActivationOffload* offload() const;
  /// [L] int64: assignments that were dropped for lack of capacity in the last step; undefined if
  /// the model is dense.
  at::Tensor dropped();
  /// The receive buffers of the flex dispatcher, which an engine may limit between two steps.
  ExpertBuffers& expert_buffers();
  /// int64: the forwards that each of the L/pp layers of this stage has run, and then each layer of
  /// its vision encoder, in device memory outside pools.
  at::Tensor layer_counter();
  /// What the host is enqueuing now: a forward, a backward, or a transfer, which is named by the
  /// work that consumes it. Empty in between.
  std::optional<order::Work> running() const;
  /// Whether the host is in forward_backward(), in optimizer_step() or in neither.
  enum class Inside { neither, passes, optimizer };
  Inside inside() const;
  fixtures::RngTracker& rng();
  const ModelConfig& config() const;
  const Layout& layout() const;
  /// The hooks of the planted fault, which the engine uses too; hooks without effect if there is
  /// none.
  faults::FaultHooks& faults() const;

  /// Lets `runner` run the parts of the model from now on; with null the parts run themselves.
  /// `runner` outlives its last forward_backward().
  void module_runner(ModuleRunner* runner);
  /// The runs of the part of `call`, in all microbatches so far in which it had a runner.
  RunCount module_runs(const ModuleCall& call) const;
  /// Fp8Weights::set_first_microbatch(); has no effect without rounded weights. Called by an engine
  /// that captures parts, before it replays the forward of one.
  void set_first_microbatch(bool first);
  /// Set by an engine around a capture, in which calls are recorded instead of run. The rounding of
  /// weights and planted faults read it.
  void recording(bool on);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace graphproof::workloads

// The hooks through which a planted fault changes what a training step, its layers and its engines
// do. The product code calls them at few sites (StructureTest.FaultsTouchTheProductCodeAtFewSites).
// Every default is the behaviour of sound code, so without a fault a call changes nothing. Each
// fault is a class in workloads/faults that overrides the hooks that it needs and keeps its own
// state.
//
// Each TrainStep owns its hooks and lends them to its components and to its engine
// (TrainStep::faults). They are called on the thread of the step, or on a thread of autograd during
// a backward.
#pragma once

#include <ATen/ATen.h>
#include <c10/core/Event.h>
#include <c10/core/Stream.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fixtures/tensors/named_tensor.h"
#include "workloads/config/recompute_config.h"

namespace graphproof::capture {
class Device;
}
namespace graphproof::order {
struct Transfer;
struct Work;
}  // namespace graphproof::order
namespace graphproof::workloads {
struct Batch;
struct DropoutPlace;
struct Layout;
struct ModelConfig;
class ModuleRunner;
class TrainStep;
}  // namespace graphproof::workloads
namespace graphproof::engines {
struct Argument;
struct CaptureParts;
struct CaptureRequest;
class Engine;
struct EngineConfig;
class Observer;
struct PaddedBatch;
struct PoolOrder;
}  // namespace graphproof::engines

namespace graphproof::faults {

/// A job in a new process, ahead of loading its checkpoint. The references live as long as the
/// call.
struct ResumedJob {
  std::vector<fixtures::NamedTensor>& read;  // Checkpoint::contents(), and the number `next_step`
  workloads::TrainStep& step;                // of the new model
  std::function<void(std::int64_t)> run;     // runs the step of this number, as the job does
  std::int64_t first_replay;                 // how many steps come before the first replay
};

/// How the harness runs a case; a fault may change it.
struct RunPlan {
  bool autograd_threads = false;
  bool blocking_stream = false;      // the stream of the case (axis capture_stream)
  bool communicators_first = false;  // destroyed before the graphs
  bool abort_communicators = false;  // instead of destroying them
  bool buffers_per_rank = false;     // CollectiveConfig::per_rank
  bool groups_made_again = false;    // under other names, while the arms run
  bool communicators_kept = false;   // also after the last case
  /// The device of `rank` stalls inside a replay, ahead of collective `ahead_of` (from 1) of the
  /// graph in its group `group`.
  struct Stall {
    int rank = 0;
    std::string group;
    std::int64_t ahead_of = 1;
  };
  std::optional<Stall> stall = {};
  bool new_process = false;  // a job resumes in a process of its own (axis resume_in)
  /// Called in that process; empty without a fault.
  std::function<void(const ResumedJob&)> before_loading = {};
};

/// The values from which a training step is built. The references live as long as the step.
struct StepPlan {
  workloads::ModelConfig& config;
  workloads::Layout& layout;
  std::uint64_t& seed;
  capture::Device& device;
  const bool& recording;  // TrainStep::recording
};

/// Work that runs on a side stream.
enum class SideWork {
  input_copies,
  gradient_reduction,
  parameter_gather,
  shared_expert,
  token_exchange,
  activation_offload
};
/// One of its two waits. fork: the side stream waits for the current stream. join: the current
/// stream waits for the side stream.
enum class SideWait { fork, join };

/// A number in device memory, so that each replay reads its current value.
enum class Scalar { learning_rate, loss_scale, adam_step, fp8_scale };

/// Where the rounding of a weight to fp8 reads whether its microbatch is the first of a step: from
/// a flag on the device, or on the host. never: the copy is not made again. none: no copy is used.
enum class FirstMicrobatch { on_device, on_host, never, none };

/// A cast of an operand to numbers with a scale for each block (block_product.h).
struct BlockCast {
  const void* weight;  // the parameter of the product
  int operand;         // BlockCasts::Operand
  bool transposed;     // whether the blocks lie along columns
  auto operator<=>(const BlockCast&) const = default;
};

/// The hooks of one training step. This class is the sound behaviour.
class FaultHooks {
 public:
  FaultHooks() = default;
  virtual ~FaultHooks() = default;
  FaultHooks(const FaultHooks&) = delete;
  FaultHooks& operator=(const FaultHooks&) = delete;

  // ---- the run of a case

  virtual void plan_run(RunPlan&) {}
  /// `eager`: Engine::outputs() of the eager arm, with which the outputs of this step are compared.
  virtual void compared_with(const std::vector<fixtures::NamedTensor>& /*eager*/) {}

  // ---- a training step

  virtual void plan_step(const StepPlan&) {}
  /// The runner of the parts of the model. `engine` is null if they run themselves.
  virtual workloads::ModuleRunner* runner(workloads::ModuleRunner* engine) { return engine; }
  /// A slot of the pipeline schedule: its transfers, and its work.
  virtual void schedule_slot(std::vector<order::Transfer>& /*transfers*/,
                             std::optional<order::Work>& /*work*/) {}
  /// Whether the step updates the correction of its routers' scores.
  virtual bool updates_router_bias() { return true; }

  // ---- the context of a forward pass

  /// Before a dropout mask is drawn. The hook may set `mask` [sizes] uint8 to replace it, or change
  /// `place` to draw it as for another place.
  virtual void dropout_mask(at::Tensor& /*mask*/, workloads::DropoutPlace& /*place*/,
                            at::IntArrayRef /*sizes*/, const at::TensorOptions& /*options*/,
                            double /*probability*/) {}
  /// Whether stream `waiting` waits for `event` (side_stream.h). If not, the hook has enqueued what
  /// the fault does instead.
  virtual bool waits(SideWork, SideWait, c10::Event& /*event*/, const c10::Stream& /*waiting*/) {
    return true;
  }
  /// The rows that a token exchange sends.
  virtual at::Tensor sent_rows(const at::Tensor& rows) { return rows; }
  /// After an exchange was enqueued. `sent` is the reference that keeps its rows alive.
  virtual void exchange_enqueued(at::Tensor& /*sent*/) {}
  using RecomputedWork =
      std::function<at::Tensor(const std::vector<at::Tensor>& inputs, bool again)>;
  /// The work of a recomputed part, which the backward runs again.
  virtual RecomputedWork recomputed(workloads::RecomputedPart, RecomputedWork work) { return work; }

  // ---- the vision encoder

  /// The number of the image of each token of the encoder, [1, L] int64; -1 for padding. The row of
  /// the decoder's tokens on this rank whose place it takes, [L] int64; their number for none.
  virtual void images(at::Tensor& /*numbers*/, at::Tensor& /*rows*/) {}
  /// Whether tensor parallel ranks with parts of the sequences sum the gradients of image tokens.
  virtual bool sums_image_gradients() { return true; }

  // ---- layers

  /// Whether the layer adds one to its counter. If not, the hook has done it.
  virtual bool counts_layer(std::int64_t /*layer*/, const at::Tensor& /*counter*/) { return true; }
  /// Whether the layer computes y + bias. If not, the hook has added the bias to y in place.
  virtual bool adds_bias(const at::Tensor& /*y*/, const at::Tensor& /*bias*/) { return true; }
  /// The positions [S] int64, on the host, by which a context parallel rank rotates queries and
  /// keys.
  virtual at::Tensor rotary_positions(const at::Tensor& positions, const workloads::Layout&) {
    return positions;
  }
  /// The keys and values that are sent to other context parallel ranks.
  virtual at::Tensor sent_keys_and_values(const at::Tensor& x) { return x; }
  /// The positions [N] int64 by which the rotary parts that inference keeps are rotated.
  virtual at::Tensor kept_positions(const at::Tensor& positions) { return positions; }
  /// The input of a scan: the tokens [B, A, G', C] in the order of the sequence. `pieces` [cp, B,
  /// 2, S/2, G', C] are the same tokens as they arrived from the context parallel ranks.
  virtual at::Tensor scan_input(const at::Tensor& in_order, const at::Tensor& /*pieces*/) {
    return in_order;
  }
  /// The mean [B, A, G', 1] of each group of `squares` [B, A, G', R*D].
  virtual at::Tensor mean_square(const at::Tensor& mean, const at::Tensor& /*squares*/) {
    return mean;
  }
  /// Whether the router sums chosen_by [E] fp32 over the ranks that share a sequence.
  virtual bool sums_router_load(at::Tensor& /*chosen_by*/) { return true; }
  /// The assignments [N, E] bool that are dispatched to their experts. `fitting`: those for which
  /// there is capacity.
  virtual at::Tensor dispatched(const at::Tensor& fitting, std::int64_t /*capacity*/) {
    return fitting;
  }
  /// If defined, replaces the reduce-scatter of an expert's partial sums `rows` on this rank.
  virtual at::Tensor unsummed_part(const at::Tensor& /*rows*/) { return {}; }
  /// Where the rounding of `weight` reads its flag.
  virtual FirstMicrobatch first_microbatch(const at::Tensor& /*weight*/, FirstMicrobatch read) {
    return read;
  }

  /// Before the input of a product is cast to fp8. reduce() reduces over the ranks what the casts
  /// of the forward have noted so far (fp8_scaling.h).
  virtual void before_fp8_input(const std::function<void()>& /*reduce*/) {}
  /// Whether the end of a forward or backward of `microbatch` updates the scales of fp8.
  virtual bool leaves_fp8_context(std::int64_t /*microbatch*/) { return true; }

  /// The scales with which a cast rounds: `of_block` bytes, and `of_tensor` fp32, which may be
  /// undefined. They are those of the tensor that is cast.
  virtual void block_scales(const BlockCast&, at::Tensor& /*of_block*/, at::Tensor& /*of_tensor*/) {
  }
  /// Before x [.., R, C] is cast with blocks along its columns. rounded() returns x as its cast
  /// with blocks along rows has it.
  virtual void before_column_cast(at::Tensor& /*x*/,
                                  const std::function<at::Tensor()>& /*rounded*/) {}

  /// The labels [B, A] int64 of all tokens of a microbatch, rank by rank, of which multi-token
  /// prediction takes those that are further ahead, and its documents [B, A] int64, within which it
  /// does; undefined unless sequences are packed. The weights [B, S] fp32 of this rank's labels are
  /// 0 for padding, up to which it does; undefined if there can be none.
  virtual void predicted(at::Tensor& /*labels*/, at::Tensor& /*documents*/,
                         at::Tensor& /*weights*/) {}

  // ---- gradients, optimizer, checkpoint

  /// The number of additions to its gradients that complete a bucket of `parameters` parameters.
  virtual std::int64_t additions(std::int64_t additions, std::size_t /*parameters*/) {
    return additions;
  }
  /// Whether the host checks for values that are not finite. `checked`: the checks so far.
  virtual bool host_checks(std::int64_t /*checked*/) { return true; }
  /// The layout by which the elements of the norm for clipping are counted and summed.
  virtual void clip_layout(workloads::Layout&) {}
  /// Whether this rank decides without the others that a step is skipped. found [1] fp32 is 1 if
  /// its gradients have an infinite element.
  virtual bool decides_alone(at::Tensor& /*found*/) { return false; }
  /// The tensor from which a kernel of the optimizer or of the backward reads a number.
  virtual at::Tensor scalar(Scalar, const at::Tensor& value) { return value; }
  /// Whether the ranks gather the parameters of this bucket.
  virtual bool gathers(std::size_t /*bucket*/, std::size_t /*buckets*/) { return true; }
  /// Whether a checkpoint holds the states of the random number generators.
  virtual bool saves_random_numbers() { return true; }
  /// The weights [B, S] fp32 of the tokens in the loss of a microbatch; zero for padding.
  virtual at::Tensor padded_weights(const at::Tensor& weights) { return weights; }

  // ---- engines

  /// make(config, device, observer) makes the engine of a step; the observer may be null.
  using MakeEngine = std::function<std::unique_ptr<engines::Engine>(
      const engines::EngineConfig&, capture::Device&, engines::Observer*)>;
  struct EngineParts {
    const engines::EngineConfig& config;
    capture::Device& device;
    c10::Stream stream;
    workloads::TrainStep& step;
    engines::Observer* observer;
  };
  /// Whether the hook has made the engine, from other parts or wrapped. If not, the caller makes
  /// it.
  virtual bool makes_engine(const EngineParts&, const MakeEngine&,
                            std::unique_ptr<engines::Engine>& /*made*/) {
    return false;
  }
  /// Before a capture starts, after the observer's before_capture().
  virtual void before_capture(const engines::CaptureParts&, engines::CaptureRequest&) {}
  /// Whether `fresh` has replaced the static inputs `inputs` instead of being copied into them.
  virtual bool rebinds_inputs(workloads::Batch& /*inputs*/, const workloads::Batch& /*fresh*/) {
    return false;
  }
  /// Before a module is captured: the hook may provide memory for its first static inputs.
  /// `from_outside`: its first input is not the output of another module.
  virtual void static_inputs(std::vector<at::Tensor>& /*inputs*/,
                             const std::vector<engines::Argument>&, bool /*from_outside*/) {}
  /// Before the launch of `graph`, which is number `position` of the captures of its pool: whether
  /// a launch that the pool does not allow is an error. Otherwise it is only counted.
  virtual bool keeps_pool_order(const std::string& /*graph*/, engines::PoolOrder&,
                                std::int64_t /*position*/) {
    return true;
  }
  /// The bucket by which the engine of a step is looked up. `found` is the one that holds its
  /// length, `latest_used` the most recently used one with graphs; either may be empty.
  virtual std::optional<std::int64_t> bucket(std::optional<std::int64_t> found,
                                             std::optional<std::int64_t> /*latest_used*/) {
    return found;
  }
  /// How a step of inference puts its batch together.
  virtual void padded_batch(engines::PaddedBatch&) {}
  /// Whether a full cache drops this engine. The hook may replace the engine.
  virtual bool evicts(std::unique_ptr<engines::Engine>& /*engine*/) { return true; }
  /// Whether the host waits for the device before it drops graphs that ran on `stream`.
  virtual bool waits_before_drop(const c10::Stream& /*stream*/) { return true; }
};

}  // namespace graphproof::faults

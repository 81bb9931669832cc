// The seams at which a planted fault may change what a training step, its layers and its engines
// do. Product code calls them where such a thing happens; every default here is what sound code
// does, so without a fault a call changes nothing. What a fault does lies in workloads/faults, one
// class for each fault that overrides what it needs and keeps its own state.
//
// Each TrainStep has hooks of its own and lends them to what it is made of and to its engine
// (TrainStep::faults). Called on the thread of the step, save where autograd calls.
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
struct PoolOrder;
}  // namespace graphproof::engines

namespace graphproof::faults {

/// How the harness runs a case.
struct RunPlan {
  bool autograd_threads = false;
  bool communicators_first = false;  // destroyed before the graphs
  bool abort_communicators = false;  // instead of destroying them
  bool buffers_per_rank = false;     // CollectiveConfig::per_rank
};

/// What a training step is about to be built from. The references live as long as the step.
struct StepPlan {
  workloads::ModelConfig& config;
  workloads::Layout& layout;
  std::uint64_t& seed;
  capture::Device& device;
  const bool& recording;  // TrainStep::recording
};

/// Work that runs on a stream of its own, and which of its two waits is meant: it waits for the
/// current stream when it begins (fork), and the current stream waits for it (join).
enum class SideWork {
  input_copies,
  gradient_reduction,
  parameter_gather,
  shared_expert,
  token_exchange
};
enum class SideWait { fork, join };

/// A number that lives in device memory so that a replay reads today's value.
enum class Scalar { learning_rate, loss_scale, adam_step };

/// Where the rounding of a weight to fp8 takes from whether its microbatch is a step's first: a
/// flag on the device, or the host. never: the copy stays as it is. none: no copy is used.
enum class FirstMicrobatch { on_device, on_host, never, none };

class FaultHooks {
 public:
  FaultHooks() = default;
  virtual ~FaultHooks() = default;
  FaultHooks(const FaultHooks&) = delete;
  FaultHooks& operator=(const FaultHooks&) = delete;

  // ---- the run of a case

  virtual void plan_run(RunPlan&) {}
  /// Engine::outputs() of the eager arm that this step's outputs are compared with.
  virtual void compared_with(const std::vector<fixtures::NamedTensor>& /*eager*/) {}

  // ---- a training step

  virtual void plan_step(const StepPlan&) {}
  /// Who runs the parts of the model; `engine` is null where they run themselves.
  virtual workloads::ModuleRunner* runner(workloads::ModuleRunner* engine) { return engine; }
  /// A turn of the pipeline schedule: its transfers, and the work that is run in it.
  virtual void turn(std::vector<order::Transfer>& /*transfers*/,
                    std::optional<order::Work>& /*work*/) {}
  /// Whether the step updates the correction of its routers' scores.
  virtual bool updates_router_bias() { return true; }

  // ---- what a forward pass carries

  /// Before a dropout mask is drawn: sets `mask` [sizes] uint8 to use another one, or `place` to
  /// draw it as elsewhere.
  virtual void dropout_mask(at::Tensor& /*mask*/, workloads::DropoutPlace& /*place*/,
                            at::IntArrayRef /*sizes*/, const at::TensorOptions& /*options*/,
                            double /*probability*/) {}
  /// Whether `waiting` is to wait for `event` (side_stream.h). Enqueued on `waiting` otherwise is
  /// what the fault does instead.
  virtual bool waits(SideWork, SideWait, c10::Event& /*event*/, const c10::Stream& /*waiting*/) {
    return true;
  }
  /// The rows that a token exchange sends; and after it was enqueued, its hold on them.
  virtual at::Tensor sent_rows(const at::Tensor& rows) { return rows; }
  virtual void exchange_enqueued(at::Tensor& /*sent*/) {}
  using RecomputedWork =
      std::function<at::Tensor(const std::vector<at::Tensor>& inputs, bool again)>;
  /// Work of a part whose backward runs it again.
  virtual RecomputedWork recomputed(workloads::RecomputedPart, RecomputedWork work) { return work; }

  // ---- layers

  /// Adds one to a layer's counter, unless this returns false and has done it itself.
  virtual bool counts_layer(std::int64_t /*layer*/, const at::Tensor& /*counter*/) { return true; }
  /// y + bias, unless this returns false and has added it to y in place.
  virtual bool adds_bias(const at::Tensor& /*y*/, const at::Tensor& /*bias*/) { return true; }
  /// Positions [S] int64, on the host, by which a context parallel rank turns queries and keys.
  virtual at::Tensor rotary_positions(const at::Tensor& positions, const workloads::Layout&) {
    return positions;
  }
  /// Keys and values that are sent to other context parallel ranks.
  virtual at::Tensor travelling(const at::Tensor& x) { return x; }
  /// Tokens [B, A, G', C] in the order of the sequence; `pieces` [cp, B, 2, S/2, G', C] as they
  /// arrived from the context parallel ranks.
  virtual at::Tensor scanned(const at::Tensor& in_order, const at::Tensor& /*pieces*/) {
    return in_order;
  }
  /// The mean over each group of squares [B, A, G', R*D], [B, A, G', 1].
  virtual at::Tensor mean_square(const at::Tensor& mean, const at::Tensor& /*squares*/) {
    return mean;
  }
  /// Sums chosen_by [E] fp32 over the ranks of a sequence, unless this returns false.
  virtual bool sums_router_load(at::Tensor& /*chosen_by*/) { return true; }
  /// Which of the assignments that fit [N, E] bool are carried to their experts.
  virtual at::Tensor carried(const at::Tensor& fitting, std::int64_t /*capacity*/) {
    return fitting;
  }
  /// This rank's part of an expert's partial sums `rows`, in place of their reduce-scatter;
  /// undefined for the reduce-scatter.
  virtual at::Tensor unsummed_part(const at::Tensor& /*rows*/) { return {}; }
  virtual FirstMicrobatch first_microbatch(const at::Tensor& /*weight*/, FirstMicrobatch read) {
    return read;
  }

  // ---- gradients, optimizer, checkpoint

  /// How many additions to the gradients of a bucket of `parameters` parameters complete it.
  virtual std::int64_t additions(std::int64_t additions, std::size_t /*parameters*/) {
    return additions;
  }
  /// Whether the host looks for values that are not finite, having looked `looked` times.
  virtual bool host_looks(std::int64_t /*looked*/) { return true; }
  /// The layout by which the norm for clipping is counted and summed.
  virtual void clip_layout(workloads::Layout&) {}
  /// found [1] fp32, 1 where this rank's gradients hold something infinite: true if the ranks do
  /// not ask each other.
  virtual bool decides_alone(at::Tensor& /*found*/) { return false; }
  /// A number that a kernel of the optimizer or of backward reads.
  virtual at::Tensor scalar(Scalar, const at::Tensor& value) { return value; }
  /// Whether the ranks gather their parameters of this bucket.
  virtual bool gathers(std::size_t /*bucket*/, std::size_t /*buckets*/) { return true; }
  virtual bool saves_random_numbers() { return true; }
  /// What tokens weigh in the loss of a microbatch, [B, S] fp32, zero for its padding.
  virtual at::Tensor padded_weights(const at::Tensor& weights) { return weights; }

  // ---- engines

  /// make(config, device, observer) makes the engine of `step`; the observer may be null. True if
  /// the hook has made it, with something else or wrapped.
  using MakeEngine = std::function<std::unique_ptr<engines::Engine>(
      const engines::EngineConfig&, capture::Device&, engines::Observer*)>;
  struct EngineParts {
    const engines::EngineConfig& config;
    capture::Device& device;
    c10::Stream stream;
    workloads::TrainStep& step;
    engines::Observer* observer;
  };
  virtual bool makes_engine(const EngineParts&, const MakeEngine&,
                            std::unique_ptr<engines::Engine>& /*made*/) {
    return false;
  }
  /// After the observer was told of the capture, before anything of it is done.
  virtual void before_capture(const engines::CaptureParts&, engines::CaptureRequest&) {}
  /// A batch that arrives at static inputs: true if it has taken the place of `inputs`, which are
  /// then not copied into.
  virtual bool rebinds_inputs(workloads::Batch& /*inputs*/, const workloads::Batch& /*fresh*/) {
    return false;
  }
  /// Before a module is captured: memory for its first static inputs, which is then used in place
  /// of the engine's. `from_outside`: its first input is no other module's output.
  virtual void static_inputs(std::vector<at::Tensor>& /*inputs*/,
                             const std::vector<engines::Argument>&, bool /*from_outside*/) {}
  /// Before `graph`, number `turn` of its pool's captures, is launched: whether a launch that its
  /// pool does not allow is an error; it is counted otherwise.
  virtual bool keeps_pool_order(const std::string& /*graph*/, engines::PoolOrder&,
                                std::int64_t /*turn*/) {
    return true;
  }
  /// The bucket that a step of changing length is looked up by, if one holds it; `latest_used` of
  /// those with graphs.
  virtual std::optional<std::int64_t> bucket(std::optional<std::int64_t> found,
                                             std::optional<std::int64_t> /*latest_used*/) {
    return found;
  }
  /// Whether a full cache drops this engine; the fault may put another one in its place.
  virtual bool evicts(std::unique_ptr<engines::Engine>& /*engine*/) { return true; }
  /// Whether the host waits for the device before it drops graphs that ran on `stream`.
  virtual bool waits_before_drop(const c10::Stream& /*stream*/) { return true; }
};

}  // namespace graphproof::faults

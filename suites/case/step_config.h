// The configuration of a training step that a case stands for: model, layout, engine. The only file
// that knows both the axes and the workload.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "fixtures/comm/process_groups.h"
#include "fixtures/device/rng_tracker.h"
#include "fixtures/process/fault.h"
#include "fixtures/process/rank.h"
#include "matrix/case/axes.h"
#include "matrix/case/case.h"
#include "matrix/case/tolerance.h"
#include "workloads/config/model_config.h"
#include "workloads/engine_traits/engine_traits.h"
#include "workloads/engines/capture/engine.h"
#include "workloads/engines/decoding/decoder.h"
#include "workloads/training/collective.h"

namespace graphproof::suites {

/// The name of a capture mode as the axis capture_mode spells it.
std::string capture_mode_word(capture::CaptureMode mode);

/// Spelled as the values of the axis schedule, with `_` for `-`.
enum class Schedule { train, train_eval_train, resume, decode, train_rollout_train };

/// What all arms of a case are built with.
struct StepConfig {
  /// Only for model collective, which does not use `model`.
  std::optional<workloads::CollectiveConfig> collective;
  /// Only with schedule decode, and of each rollout with schedule train-rollout-train.
  std::optional<engines::DecoderConfig> decoding;
  workloads::ModelConfig model;
  workloads::Layout layout;
  engines::EngineConfig engine;  // an eager arm changes impl to none
  fixtures::Fault fault = fixtures::Fault::none;
  std::int64_t steps = 0;  // compared steps of an arm
  bool autograd_threads = false;
  bool blocking_stream = false;  // axis capture_stream
  Schedule schedule = Schedule::train;
  bool resumes_in_new_process = false;  // axis resume_in, with schedule resume
  /// Whether eager and graph steps are timed in blocks that alternate (axis perf_limit).
  bool times_blocks = false;
  /// By how much the tensors of each class may differ; empty: no byte may.
  matrix::Tolerances tolerances;
  /// torch.use_deterministic_algorithms
  bool deterministic_algorithms = true;
  /// How many sequence lengths may have graphs at the same time; 0: all steps have one length.
  std::int64_t shape_buckets = 0;
  /// Whether a capture updates the executable graph of an earlier one (axis recapture).
  bool exec_update = false;
  /// Steps of the long job after the arms (workloads/soak); 0: there is none.
  std::int64_t soak_steps = 0;
  fixtures::RngBackend rng_backend = fixtures::RngBackend::graph_safe;
  std::uint64_t seed = 0;

  const engines::EngineTraits& traits() const { return engines::traits_of(engine.impl); }
  bool graphs() const { return traits().captures(); }
  /// The step whose inputs the graphs capture.
  std::int64_t capture_step() const { return traits().capture_step(engine.warmup_steps); }
  /// The first step that is replayed.
  std::int64_t first_replay() const { return traits().eager_steps(engine.warmup_steps); }
  /// The first step after the evaluations, which come after the first replayed step.
  std::int64_t evaluation_step() const { return first_replay() + 1; }
  /// How many batches are evaluated: enough to warm up, capture and replay a graph of the
  /// evaluation.
  std::int64_t evaluations() const { return engine.warmup_steps + 2; }
  /// Whether rollouts come after step `step`, which is replayed (suites/arms/rollout.h).
  bool rolls_out_after(std::int64_t step) const {
    return schedule == Schedule::train_rollout_train && step >= first_replay();
  }
  /// The first step after the checkpoint. The resumed job has time for its warm-up and one replay,
  /// and in a new process for a second one, because a first replay has the inputs of its capture.
  std::int64_t resume_step() const {
    return steps - first_replay() - (resumes_in_new_process ? 2 : 1);
  }
};

/// The configuration of `test_case` on the rank `place`. Ranks are laid out with tp fastest: rank =
/// ((pp_rank * dp + dp_rank) * cp + cp_rank) * tp + tp_rank. Expert parallel ranks are adjacent
/// within a stage (comm::expert_groups). Group names are those of process_groups(). Throws
/// record::Error if the world size is not tp * cp * dp * pp, or for an axis value that this program
/// does not implement, which a plan should have skipped (`skipped.capability`).
StepConfig step_config(const matrix::AxisTable& axes, const matrix::Case& test_case,
                       const fixtures::Rank& place, std::uint64_t seed);

/// The groups in which a step of this layout communicates: "tp" and "dp"; with context parallelism
/// "cp" and "dp_cp"; with a pipeline one for each directed edge and, if the last stage has the
/// embedding too, the embedding group; with experts that are split or whose ranks are tensor
/// parallel "ep", "edp" and "etp". A rank may be in no group of an edge.
std::vector<comm::GroupLayout> process_groups(const workloads::Layout& layout);

/// The configuration of the layout reference: the single-rank model on the same global batch, with
/// every degree 1, all microbatches, no dropout, no fault and no graph. If the ranks route parts of
/// a sequence, the capacity of experts is counted within those parts; rounded weights have the
/// scales of the ranks' parts. In these cases, and if a distributed optimizer's second step is
/// compared, a model with experts is fp32, because 16-bit roundings that differ with the layout
/// would send tokens to other experts. So is a hybrid model whose second step is compared.
StepConfig single_rank(const StepConfig& parallel);

/// The rank of `layout` in the world (process_groups.h has the order of ranks).
int world_rank(const workloads::Layout& layout);

}  // namespace graphproof::suites

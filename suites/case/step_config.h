// From a case to what is built for it: model, layout, engine. The only place that knows both the
// axes and the workload.
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
#include "workloads/config/model_config.h"
#include "workloads/engine_traits/engine_traits.h"
#include "workloads/engines/capture/engine.h"
#include "workloads/training/collective.h"

namespace graphproof::suites {

/// The word of a capture mode, as the axis spells it.
std::string capture_mode_word(capture::CaptureMode mode);

/// Spelled as the axis schedule.
enum class Schedule { train, train_eval_train, resume };

struct StepConfig {
  std::optional<workloads::CollectiveConfig>
      collective;  // of model collective, which has no use for `model`
  workloads::ModelConfig model;
  workloads::Layout layout;
  engines::EngineConfig engine;  // an eager arm changes impl to none
  fixtures::Fault fault = fixtures::Fault::none;
  std::int64_t steps = 0;  // compared steps of an arm
  bool autograd_threads = false;
  Schedule schedule = Schedule::train;
  std::int64_t shape_buckets = 0;  // lengths that have graphs at once; 0: steps of one length alone
  fixtures::RngBackend rng_backend = fixtures::RngBackend::graph_safe;
  std::uint64_t seed = 0;

  const engines::EngineTraits& traits() const { return engines::traits_of(engine.impl); }
  bool graphs() const { return traits().captures(); }
  /// The step whose inputs the graphs capture.
  std::int64_t capture_step() const { return traits().capture_step(engine.warmup_steps); }
  /// The first step that is replayed.
  std::int64_t first_replay() const { return traits().eager_steps(engine.warmup_steps); }
  /// The first step after the evaluations: behind one that was replayed.
  std::int64_t evaluation_step() const { return first_replay() + 1; }
  /// How many batches are evaluated: what a graph of evaluation needs to warm up, to capture, and
  /// to be replayed again.
  std::int64_t evaluations() const { return engine.warmup_steps + 2; }
  /// The first step after the checkpoint: one replay fits behind the warm-up of the job that goes
  /// on.
  std::int64_t resume_step() const { return steps - first_replay() - 1; }
};

/// Ranks are laid out with tp fastest: rank = ((pp_rank * dp + dp_rank) * cp + cp_rank) * tp +
/// tp_rank; expert parallel ranks are neighbours, inside those of a stage (comm::expert_groups).
/// Group names are those of comm::ProcessGroups. Throws record::Error where the world is not tp *
/// cp * dp * pp, or where an axis has a value that this program has no part for: a plan should have
/// skipped it (`skipped.capability`).
StepConfig step_config(const matrix::AxisTable& axes, const matrix::Case& test_case,
                       const fixtures::Rank& place, std::uint64_t seed);

/// The groups that a step of this layout communicates in: "tp" and "dp"; with context parallelism
/// "cp" and "dp_cp"; of a pipeline one for each directed edge and, with tied embeddings, the
/// embedding group; with experts that are split, or whose ranks are tensor parallel, "ep", "edp"
/// and "etp". A rank may be in none of an edge's.
std::vector<comm::GroupLayout> process_groups(const workloads::Layout& layout);

/// The single-rank model over the same global batch: every degree 1, all microbatches, no dropout,
/// no fault, no graph. Where ranks route parts of a sequence it counts capacity within those;
/// rounded weights have the ranks' scales. There, and where a distributed optimizer's second step
/// is compared, experts are fp32: roundings of 16 bits that differ with the layout would send
/// tokens to others, and the parallel model is compared with it in its precision.
StepConfig single_rank(const StepConfig& parallel);

}  // namespace graphproof::suites

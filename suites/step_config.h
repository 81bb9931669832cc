// From a case to what is built for it: model, layout, engine. The only place that knows both the axes and the workload.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fixtures/rank.h"
#include "fixtures/rng_tracker.h"
#include "matrix/axes.h"
#include "matrix/case.h"
#include "workloads/engines/engine.h"
#include "workloads/model_config.h"

namespace graphproof::suites {

/// The word of a capture mode, as the axis spells it.
std::string capture_mode_word(capture::CaptureMode mode);

struct StepConfig {
  workloads::ModelConfig model;
  workloads::Layout layout;
  engines::EngineConfig engine;  // impl, warm-up, capture mode, fault; an eager arm changes impl to none
  std::int64_t steps = 0;        // compared steps of an arm
  bool autograd_threads = false;
  fixtures::RngBackend rng_backend = fixtures::RngBackend::graph_safe;
  std::uint64_t seed = 0;

  bool graphs() const { return engine.impl != "none"; }
  /// The step whose inputs the graph captures: the first one after the warm-up.
  std::int64_t capture_step() const { return engine.warmup_steps; }
};

/// Ranks are laid out with tp fastest: rank = dp_rank * tp + tp_rank. Group names are those of comm::ProcessGroups.
/// Throws record::Error where the world is not tp * dp, or where an axis has a value that this program has no
/// part for: a plan should have skipped it (`skipped.capability`).
StepConfig step_config(const matrix::AxisTable& axes, const matrix::Case& test_case, const fixtures::Rank& place,
                       std::uint64_t seed);

/// The single-rank model over the same global batch: tp and dp 1, all microbatches, no dropout, no fault, no graph.
StepConfig single_rank(const StepConfig& parallel);

}  // namespace graphproof::suites

// What the rest of the tree needs to know of each engine (a graph implementation, axis `impl`)
// without building one: what it captures and when, how many graphs a step launches, and what it
// supports. A decision that depends on the engine reads a field of this table and never compares
// names (StructureTest.OnlyTheTraitsCompareEngineNames).
//
// Pure: it needs no LibTorch, so the judge and the matrix may include it. The contract of each
// engine is at the top of its own header in workloads/engines.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace graphproof::engines {

/// Whether a graph of this name is one of the vision encoder.
constexpr bool of_vision_encoder(std::string_view graph) { return graph.starts_with("vision."); }
/// Whether a graph of this name is one that a single pipeline stage has: those of the vision
/// encoder, on the first, and of multi-token prediction, on the last.
constexpr bool of_one_stage(std::string_view graph) {
  return of_vision_encoder(graph) || graph.starts_with("mtp.");
}

/// What one graph of the engine holds. `modules`: one module, or the modules of one layer, with
/// separate graphs for forward and backward. What lies between the modules runs eagerly.
enum class Captured { nothing, whole_step, modules };

/// The limits that the speed bench (workloads/engines/speed) applies to an engine, as ratios. 0:
/// there is no limit.
struct SpeedLimits {
  double over_floor = 0;  // step time over Engine::floor_step()
  /// Step time over that of the first engine of the table that captures the whole step, on one
  /// pipeline stage and on several. The second is larger, because stages wait for each other at
  /// every launch.
  double over_whole_step = 0, over_whole_step_in_pipeline = 0;
  /// Bytes of the graph pools over the peak of an eager step.
  double pool_over_eager_peak = 0;
};

/// One row of the table below.
struct EngineTraits {
  std::string_view impl;  // the value of axis `impl`
  Captured captured = Captured::nothing;
  /// The first step runs eagerly and is recorded, and the graphs are captured at its end,
  /// regardless of axis warmup_steps. Other engines run warmup_steps eager steps and capture in the
  /// step after them.
  bool records_first_step = false;
  /// The captured modules of one layer share one forward graph and one backward graph; otherwise
  /// each captured module has its own.
  bool one_graph_a_layer = false;
  /// The weight gradients that a layer's backward defers (axis delay_wgrad) are a third graph of
  /// the layer.
  bool captures_delayed_weight_gradients = false;
  /// TrainStep::evaluate() has a graph of its own; otherwise evaluation runs eagerly.
  bool captures_evaluation = false;
  /// In installed packages it chooses the mode of each capture, and has no argument for it.
  bool packages_choose_mode = false;
  /// Runs the schedules of pipeline stages.
  bool runs_pipelines = true;
  /// ShapeBuckets can keep one such engine for each sequence length.
  bool serves_shape_buckets = false;
  /// The engine follows axis pool; otherwise all its graphs share one pool.
  bool chooses_pools = false;
  SpeedLimits limits = {};

  bool captures() const { return captured != Captured::nothing; }
  bool captures_whole_step() const { return captured == Captured::whole_step; }
  bool captures_modules() const { return captured == Captured::modules; }
  /// The number of eager steps before the first replay if axis warmup_steps is `warmup_steps`.
  std::int64_t eager_steps(std::int64_t warmup_steps) const {
    return records_first_step ? 1 : warmup_steps;
  }
  /// The step, counted from 0, whose inputs the graphs are captured with.
  std::int64_t capture_step(std::int64_t warmup_steps) const {
    return records_first_step ? 0 : warmup_steps;
  }
};

/// One row for each engine, in the order of the columns of the speed bench's tables.
inline constexpr std::array kEngineTraits{
    EngineTraits{.impl = "none"},
    EngineTraits{.impl = "full_iteration",
                 .captured = Captured::whole_step,
                 .captures_evaluation = true,
                 .serves_shape_buckets = true,
                 .limits = {.over_floor = 1.05}},
    EngineTraits{.impl = "local",
                 .captured = Captured::modules,
                 .records_first_step = true,
                 .packages_choose_mode = true,
                 .chooses_pools = true,
                 .limits = {.over_floor = 1.1,
                            .over_whole_step = 1.15,
                            .over_whole_step_in_pipeline = 1.2,
                            .pool_over_eager_peak = 1.3}},
    EngineTraits{
        .impl = "transformer_engine",
        .captured = Captured::modules,
        .one_graph_a_layer = true,
        .captures_delayed_weight_gradients = true,
        .packages_choose_mode = true,
        .limits = {.over_floor = 1.1, .over_whole_step = 1.15, .over_whole_step_in_pipeline = 1.2}},
    EngineTraits{.impl = "callables",
                 .captured = Captured::modules,
                 .runs_pipelines = false,
                 .serves_shape_buckets = true},
    EngineTraits{.impl = "manual", .captured = Captured::whole_step},
};

/// The engines for which wanted(traits) is true, as "a, b or c", for messages.
template <class Wanted>
std::string engine_names(Wanted wanted) {
  std::vector<std::string_view> names;
  for (const EngineTraits& traits : kEngineTraits)
    if (wanted(traits)) names.push_back(traits.impl);
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i)
    text += (i == 0 ? "" : i + 1 == names.size() ? " or " : ", ") + std::string(names[i]);
  return text;
}

/// The row of an engine. Throws std::invalid_argument for an impl without a row.
inline const EngineTraits& traits_of(std::string_view impl) {
  const auto found = std::find_if(kEngineTraits.begin(), kEngineTraits.end(),
                                  [&](const EngineTraits& row) { return row.impl == impl; });
  if (found != kEngineTraits.end()) return *found;
  throw std::invalid_argument("engine: got impl " + std::string(impl) + "; want " +
                              engine_names([](const EngineTraits&) { return true; }) +
                              "; why: no other engine is built; next: choose one of them");
}

}  // namespace graphproof::engines

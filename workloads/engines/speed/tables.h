// The measured figures as Markdown: step times, the limits that they are compared with, busy times,
// pool bytes. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "workloads/engine_traits/engine_traits.h"

namespace graphproof::speed {

/// The name of an engine in the tables: its impl, or "eager".
std::string name_of(const engines::EngineTraits& engine);
/// Whether the step of the engine has a limit relative to its floor, and whether it also checks
/// each call. The tables have a column for each.
bool has_floor_gate(const engines::EngineTraits& engine);
bool has_checks_column(const engines::EngineTraits& engine);

/// The names of two further steps in StepTimes::block_ms: the floor of an engine
/// (Engine::floor_step), and the engine without EngineConfig::checks.
std::string floor_of(const std::string& engine);
std::string unchecked(const std::string& engine);

/// The step times in one layout. A block is several steps. The blocks of all engines alternate, so
/// that clock changes and other load affect all of them equally, and block b of one is
/// comparable with block b of every other.
struct StepTimes {
  std::string layout;
  bool pipeline = false;
  std::map<std::string, std::vector<double>> block_ms;  // ms per step of the slowest rank; by name
};

/// The median; of an even number of values the upper one. REQUIRES: at least one value.
double median(std::vector<double> values);
/// The median over the blocks of a / b. Empty if one of the two was not measured.
std::optional<double> ratio(const StepTimes& times, const std::string& a, const std::string& b);

/// A row of step times for each layout.
std::string step_table(const std::vector<StepTimes>& layouts);
/// A row for each limit that applies to a layout: the compared quantity, the measured value, the
/// limit, and met or missed.
std::string gate_table(const std::vector<StepTimes>& layouts);

/// The busy times of one engine in one layout. compute_ms is that of the rank that computes
/// longest, collectives_ms that of the rank that waits least in them.
struct BusyRow {
  std::string layout, name;
  double step_ms = 0, compute_ms = 0, collectives_ms = 0;
  double kernels = 0;        // per step, on rank 0
  double graph_kernels = 0;  // those in graphs, from the census of the graphs
};

/// A row for each entry, without times if the trace has lost kernels, that is if it has fewer than
/// the graphs hold.
std::string busy_table(const std::vector<BusyRow>& rows);

/// The memory of one engine on one rank. Eager has no pool.
struct PoolRow {
  std::string engine;
  std::int64_t pool_bytes = 0;  // reserved by graph pools
  /// The peak of a step above what is allocated between steps, without pools.
  std::int64_t step_peak_bytes = 0;
  /// All memory from the driver: parameters, gradients, static inputs, pools, memory of the step.
  std::int64_t reserved_bytes = 0;
};

/// A row for each entry, compared with the step peak of engine "eager", which must be among the
/// rows.
std::string pool_table(const std::vector<PoolRow>& rows);

}  // namespace graphproof::speed

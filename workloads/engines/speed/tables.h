// What was measured, as Markdown: step times, the gates that they are held against, busy times,
// pool bytes. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "workloads/engine_traits/engine_traits.h"

namespace graphproof::speed {

/// What the tables call an engine: its impl, or "eager".
std::string name_of(const engines::EngineTraits& engine);
/// Engines whose step is held against their floor, and of these the ones that look at each call:
/// the tables have a column for each of the two.
bool has_floor_gate(const engines::EngineTraits& engine);
bool has_checks_column(const engines::EngineTraits& engine);

/// The ways to run a step, as they are named in StepTimes::block_ms: an engine, its floor
/// (Engine::floor_step), and the engine without EngineConfig::checks.
std::string floor_of(const std::string& engine);
std::string unchecked(const std::string& engine);

/// Of one layout. A block is several steps; blocks of all ways took turns, so that clocks and
/// neighbours hit all alike, and block b of one way stands beside block b of every other.
struct StepTimes {
  std::string layout;
  bool pipeline = false;
  std::map<std::string, std::vector<double>> block_ms;  // ms a step, of the slowest rank; by way
};

/// The middle one; of an even number the upper. REQUIRES: there is one.
double median(std::vector<double> values);
/// Median over blocks of a / b. Nothing where one of the two was not measured.
std::optional<double> ratio(const StepTimes& times, const std::string& a, const std::string& b);

std::string step_table(const std::vector<StepTimes>& layouts);
/// Each gate that holds for a layout: what is compared, measured, limit, met or missed.
std::string gate_table(const std::vector<StepTimes>& layouts);

/// Of one layout and way. Busy: of the rank that computes longest; collectives: of the rank that
/// waits in them least.
struct BusyRow {
  std::string layout, way;
  double step_ms = 0, compute_ms = 0, collectives_ms = 0;
  double kernels = 0;        // a step, of rank 0
  double graph_kernels = 0;  // of them in its graphs, by the graphs' own count
};

/// Where fewer kernels were traced than the graphs hold, the trace has lost some, and no time is
/// given.
std::string busy_table(const std::vector<BusyRow>& rows);

/// Of one engine on one rank. Eager has no pool.
struct PoolRow {
  std::string engine;
  std::int64_t pool_bytes = 0;  // reserved by graph pools
  std::int64_t step_peak_bytes =
      0;  // what a step allocates above what is allocated between steps, pools apart
  std::int64_t reserved_bytes =
      0;  // from the driver, for all: parameters, gradients, static inputs, pools, the step's own
};

/// Held against the step peak of engine "eager", which must be among the rows.
std::string pool_table(const std::vector<PoolRow>& rows);

}  // namespace graphproof::speed

// The phases of a case, in order. Limits, heartbeats, evidence and verdicts all use this table.
#pragma once

#include <array>
#include <optional>
#include <string_view>

namespace graphproof::record {

/// A phase of a case.
enum class Phase {
  validate,
  init,
  build,
  eager,
  warmup,
  capture,
  replay,
  compare,
  teardown_graph,
  teardown_comm,
  teardown_process
};

inline constexpr std::array<std::string_view, 11> kPhaseNames = {
    "validate", "init",    "build",          "eager",         "warmup",          "capture",
    "replay",   "compare", "teardown_graph", "teardown_comm", "teardown_process"};

inline constexpr std::size_t kPhaseCount = kPhaseNames.size();

constexpr std::string_view name(Phase phase) {
  return kPhaseNames[static_cast<std::size_t>(phase)];
}

/// The phase of that name; empty if there is none.
constexpr std::optional<Phase> phase_from(std::string_view text) {
  for (std::size_t i = 0; i < kPhaseCount; ++i)
    if (kPhaseNames[i] == text) return static_cast<Phase>(i);
  return std::nullopt;
}

/// Whether the limit of the phase holds for each step; otherwise it holds for the whole phase.
constexpr bool limited_per_step(Phase phase) {
  return phase == Phase::eager || phase == Phase::warmup || phase == Phase::replay;
}

}  // namespace graphproof::record

// Whether a CUDA graph is worth it: from what a case or a watched run measured, by the thresholds
// of guides to CUDA graphs, and with which API. Pure: no clock, no files.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "reports/analysis/benefit.h"
#include "reports/outcome/run_result.h"
#include "reports/record/watched/watched_checks.h"
#include "reports/record/watched/watched_run.h"

namespace graphproof::reports {

/// Below this share of a step in which the GPU works, its host is likely to be what it waits for.
/// Above kBusyShare (benefit.h) there is little that a graph could remove.
inline constexpr double kIdleShare = 0.80;
/// A launch whose kernel is shorter than this is short against the time that the host needs for it.
inline constexpr double kShortKernel_us = 50;
/// Fewer launches in a step than this are launched in well under a millisecond.
inline constexpr double kManyLaunches = 100;
/// A difference below this may be chance: one run does not measure steps more exactly.
inline constexpr double kNoise = 0.02;
/// With this share of the kernels in graphs already there is little left to capture.
inline constexpr double kMostlyCaptured = 0.90;

/// One measured number and what it says.
struct AdviceFact {
  std::string what, value, says;
};

struct Advice {
  /// "worth it" and "not worth it" were measured with a graph; "likely", "perhaps" and "unlikely"
  /// follow from an eager program; "unknown" if the numbers that decide are missing.
  std::string answer;
  std::string because;  // one sentence
  std::vector<AdviceFact> facts;
  std::vector<std::string> missing;  // what was not measured, one sentence each
  std::string api, api_why;          // what to capture with
  std::string next;                  // what the reader can do now
};

/// Of one case of a run. The speed of a graph that computes something else is no benefit, so a case
/// that did not pass has the answer unknown, like one of the simulated device or one whose ranks
/// shared a GPU.
Advice advise(const RunResult& run, const CaseResult& one);

/// Of a watched run that was judged. Only the profile full measures the device.
Advice advise(const record::WatchedRun& run, const record::WatchedChecks& checks);

std::string advice_text(const Advice& advice);
nlohmann::json to_json(const Advice& advice);

}  // namespace graphproof::reports

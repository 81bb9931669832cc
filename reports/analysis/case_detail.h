// What the folder of an attempt adds to the record of a case: curves, phases, graphs, memory, the
// ends of logs. Reports show it; no verdict depends on it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "reports/analysis/causes.h"
#include "reports/analysis/series.h"
#include "reports/record/evidence/evidence.h"
#include "reports/record/job/context.h"
#include "reports/record/run/record.h"

namespace graphproof::reports {

/// The time that a rank spent in one phase of one arm (ms from the first start of a rank).
struct PhaseSpan {
  std::string phase, arm;
  double begin_ms = 0, ms = 0;
  bool ended = true;  // false: the rank was in this phase when the attempt ended
};

/// One rank of the attempt.
struct RankDetail {
  int rank = 0;
  std::vector<PhaseSpan> phases;
  /// The most bytes that its memory lines name, by quantity: allocated, reserved, pool, device.
  std::map<std::string, std::int64_t> peak_bytes;
  std::string log_tail;  // the last lines of its log, if the attempt failed
};

/// A graph that the lowest rank with graphs captured.
struct CapturedGraph {
  std::string arm, graph, status;
  std::int64_t nodes = 0, pool_bytes = 0;
  double ms = 0;
  std::map<std::string, std::int64_t> census;  // nodes by their type
};

/// A value that lies between the two with a confidence of about 95 %.
struct Interval {
  double low = 0, high = 0;
};
/// Of the median of `samples`, by order statistics; nothing for fewer than five.
std::optional<Interval> median_interval(std::vector<double> samples);

/// The monotonic clock of the ranks' host (ms) when the first rank began and the last one ended.
struct AttemptSpan {
  std::int64_t begin_ms = 0, end_ms = 0;
};

/// See above. Empty if there is no folder.
struct CaseDetail {
  Series series;
  std::vector<ErrorFact> errors;
  std::string divergence;  // reports/analysis/divergence.h
  std::string node_dumps;  // node_dumps_text()
  std::vector<RankDetail> ranks;
  std::vector<CapturedGraph> graphs;
  /// Time of an eager step by that of a graph step, from the last steps of the solo arms.
  std::optional<Interval> gain;
  std::optional<record::Hang> hang;
};

/// Reads the files of the attempt that `record` belongs to. Files that are absent or damaged add
/// nothing.
CaseDetail read_case_detail(const std::filesystem::path& run_folder, const record::Record& record);

/// The files that ranks have left with the nodes of their graphs: "rank-0.nodes.txt,
/// rank-1.nodes.txt (lockstep_graph differs from lockstep_eager)". Empty if there are none.
std::string node_dumps_text(const std::vector<record::Evidence>& ranks);

/// Reads only the error lines of the evidence.
std::vector<ErrorFact> read_errors(const std::filesystem::path& run_folder,
                                   const record::Record& record);

/// Reads only the first and the last line of rank 0, which is quick. Nothing if there is none.
std::optional<AttemptSpan> read_attempt_span(const std::filesystem::path& run_folder,
                                             const record::Record& record);

}  // namespace graphproof::reports

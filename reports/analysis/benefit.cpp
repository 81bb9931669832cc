#include "reports/analysis/benefit.h"

namespace graphproof::reports {
namespace {

using record::operator""_verdict;

std::optional<double> figure(const record::Record& record, const std::string& name) {
  const auto found = record.figures.find(name);
  return found == record.figures.end() ? std::nullopt : std::optional(found->second);
}

/// The figure `solo` of the solo arms, or `free_run` of the free run if the case has no solo arms.
std::optional<double> figure(const record::Record& record, const std::string& solo,
                             const std::string& free_run) {
  const auto value = figure(record, solo);
  return value ? value : figure(record, free_run);
}

nlohmann::json or_null(const std::optional<double>& value) {
  return value ? nlohmann::json(*value) : nlohmann::json();
}

std::string meaning(const Benefit& row) {
  if (row.busy_share && *row.busy_share > kBusyShare) return "not expected";
  return row.graph_ms < row.eager_ms ? "gain" : "none";
}

}  // namespace

std::vector<Benefit> benefits(const RunResult& run) {
  std::vector<Benefit> rows;
  for (const CaseResult& one : run.cases) {
    const record::Record& record = one.record;
    if (run.run.options.ranks_per_gpu > 1 && record.ranks > run.run.slots)
      continue;  // ranks that share a GPU wait for each other
    const auto eager_ms = figure(record, "eager_step_ms", "eager_ms"),
               graph_ms = figure(record, "graph_step_ms", "replay_ms");
    if (record.verdict != "pass"_verdict || !eager_ms || !graph_ms) continue;
    Benefit row{.case_id = one.plan.id,
                .name = one.plan.name,
                .eager_ms = *eager_ms,
                .graph_ms = *graph_ms};
    row.launch_ms = figure(record, "graph_launch_ms", "launch_ms");
    row.busy_share = figure(record, "eager_busy_share");
    // capture_seconds covers all graphs of an arm. Older runs have only capture_ms, the longest
    // capture.
    const auto captures_s = figure(record, "capture_seconds");
    row.capture_ms = captures_s ? 1000 * *captures_s : figure(record, "capture_ms").value_or(0);
    row.graphs = static_cast<int>(figure(record, "graphs").value_or(0));
    row.extra_bytes = static_cast<std::int64_t>(
        figure(record, "extra_memory_bytes", "graph_memory_bytes").value_or(0));
    if (row.graph_ms < row.eager_ms)
      row.break_even_steps = row.capture_ms / (row.eager_ms - row.graph_ms);
    row.meaning = meaning(row);
    rows.push_back(row);
  }
  return rows;
}

nlohmann::json to_json(const Benefit& row) {
  return {{"case", row.case_id},
          {"name", row.name},
          {"eager_ms", row.eager_ms},
          {"graph_ms", row.graph_ms},
          {"launch_ms", or_null(row.launch_ms)},
          {"busy_share", or_null(row.busy_share)},
          {"capture_ms", row.capture_ms},
          {"graphs", row.graphs},
          {"extra_bytes", row.extra_bytes},
          {"break_even_steps", or_null(row.break_even_steps)},
          {"meaning", row.meaning}};
}

}  // namespace graphproof::reports

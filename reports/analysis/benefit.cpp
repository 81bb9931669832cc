#include "reports/analysis/benefit.h"

#include <algorithm>
#include <map>
#include <utility>

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

double median(const std::vector<double>& sorted) {
  const std::size_t half = sorted.size() / 2;
  return sorted.size() % 2 == 1 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
}

struct OfValue {
  std::vector<double> speed_ups, extra_bytes;
};

AxisBenefit joined(const std::string& axis, const nlohmann::json& value, OfValue of) {
  std::sort(of.speed_ups.begin(), of.speed_ups.end());
  std::sort(of.extra_bytes.begin(), of.extra_bytes.end());
  return {.axis = axis,
          .value = value,
          .cases = static_cast<int>(of.speed_ups.size()),
          .speed_up = median(of.speed_ups),
          .least = of.speed_ups.front(),
          .largest = of.speed_ups.back(),
          .extra_bytes = static_cast<std::int64_t>(median(of.extra_bytes))};
}

}  // namespace

std::vector<Benefit> benefits(const RunResult& run) {
  std::vector<Benefit> rows;
  for (const CaseResult& one : run.cases) {
    const record::Record& record = one.record;
    if (run.run.options.sharing.shared(record.ranks, run.run.slots))
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

std::vector<AxisBenefit> benefits_by_axis(const RunResult& run) {
  std::map<std::string, const nlohmann::json*> axes_of;  // by case
  for (const CaseResult& one : run.cases) axes_of[one.plan.id] = &one.plan.axes;
  std::map<std::string, std::map<nlohmann::json, OfValue>> by_axis;
  for (const Benefit& row : benefits(run)) {
    for (const auto& [axis, value] : axes_of.at(row.case_id)->items()) {
      OfValue& of = by_axis[axis][value];
      of.speed_ups.push_back(row.eager_ms / row.graph_ms);
      of.extra_bytes.push_back(static_cast<double>(row.extra_bytes));
    }
  }
  std::vector<std::vector<AxisBenefit>> axes;
  for (auto& [axis, values] : by_axis) {
    if (values.size() < 2) continue;
    std::vector<AxisBenefit> rows;
    for (auto& [value, of] : values) rows.push_back(joined(axis, value, std::move(of)));
    std::stable_sort(rows.begin(), rows.end(), [](const auto& left, const auto& right) {
      return left.speed_up > right.speed_up;
    });
    axes.push_back(std::move(rows));
  }
  const auto spread = [](const std::vector<AxisBenefit>& rows) {
    return rows.front().speed_up / rows.back().speed_up;
  };
  std::stable_sort(axes.begin(), axes.end(), [&](const auto& left, const auto& right) {
    return spread(left) > spread(right);
  });
  std::vector<AxisBenefit> all;
  for (auto& rows : axes) all.insert(all.end(), rows.begin(), rows.end());
  return all;
}

nlohmann::json to_json(const AxisBenefit& row) {
  return {{"axis", row.axis},
          {"value", row.value},
          {"cases", row.cases},
          {"speed_up", row.speed_up},
          {"least", row.least},
          {"largest", row.largest},
          {"extra_bytes", row.extra_bytes}};
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

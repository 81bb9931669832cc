#include "workloads/engines/speed/tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

namespace graphproof::speed {
namespace {

constexpr std::int64_t kMiB = 1 << 20, kGiB = 1 << 30;

using engines::EngineTraits, engines::kEngineTraits;

/// The limit that a step of `engine` takes at most `limit` times as long as one of `against`.
struct Gate {
  std::string engine, against, against_word;
  double limit;
};

/// The first engine of the table that captures the whole step.
const EngineTraits& whole_step_engine() {
  return *std::ranges::find_if(kEngineTraits, &EngineTraits::captures_whole_step);
}

std::vector<Gate> gates(bool pipeline) {
  std::vector<Gate> all;
  for (const EngineTraits& engine : kEngineTraits)
    if (has_floor_gate(engine))
      all.push_back(
          {name_of(engine), floor_of(name_of(engine)), "its floor", engine.limits.over_floor});
  const std::string whole = name_of(whole_step_engine());
  for (const EngineTraits& engine : kEngineTraits)
    if (engine.limits.over_whole_step > 0)
      all.push_back(
          {name_of(engine), whole, whole,
           pipeline ? engine.limits.over_whole_step_in_pipeline : engine.limits.over_whole_step});
  return all;
}

/// Below this size, the memory that a pool reserves depends on the 20 MiB segments.
constexpr std::int64_t kLeastActivations_bytes = kGiB;

const char* verdict(bool met) { return met ? "met" : "**missed**"; }

std::string ms(const StepTimes& times, const std::string& name) {
  const auto found = times.block_ms.find(name);
  return found == times.block_ms.end() ? "-" : fmt::format("{:.2f}", median(found->second));
}

std::string times_text(const std::optional<double>& value) {
  return value ? fmt::format("{:.3f}", *value) : "-";
}

/// The time of the checks: the median over the blocks of the differences.
std::string checks_ms(const StepTimes& times, const std::string& engine) {
  const auto with = times.block_ms.find(engine), without = times.block_ms.find(unchecked(engine));
  if (with == times.block_ms.end() || without == times.block_ms.end()) return "-";
  std::vector<double> differences;
  for (std::size_t b = 0; b < with->second.size(); ++b)
    differences.push_back(with->second[b] - without->second[b]);
  return fmt::format("{:.3f}", median(differences));
}

struct Column {
  std::string title;
  std::function<std::string(const StepTimes&)> text;
};

/// A column of step times for each engine, followed by that of its floor if it is measured. Then
/// the speedup of the first engine of many graphs over eager, and the time of the checks.
std::vector<Column> step_columns() {
  std::vector<Column> columns;
  for (const EngineTraits& engine : kEngineTraits) {
    const std::string name = name_of(engine);
    columns.push_back({name, [name](const StepTimes& times) { return ms(times, name); }});
    if (has_floor_gate(engine))
      columns.push_back(
          {"its floor", [name](const StepTimes& times) { return ms(times, floor_of(name)); }});
  }
  const std::string eager = name_of(kEngineTraits.front()),
                    many = name_of(
                        *std::ranges::find_if(kEngineTraits, &EngineTraits::captures_modules));
  columns.push_back({eager + " / " + many, [eager, many](const StepTimes& times) {
                       return times_text(ratio(times, eager, many));
                     }});
  for (const EngineTraits& engine : kEngineTraits)
    if (has_checks_column(engine))
      columns.push_back(
          {"checks of " + name_of(engine),
           [name = name_of(engine)](const StepTimes& times) { return checks_ms(times, name); }});
  return columns;
}

std::string mib(std::int64_t bytes) {
  return fmt::format("{:.0f}", static_cast<double>(bytes) / static_cast<double>(kMiB));
}

}  // namespace

std::string name_of(const EngineTraits& engine) {
  return engine.captures() ? std::string(engine.impl) : "eager";
}
bool has_floor_gate(const EngineTraits& engine) { return engine.limits.over_floor > 0; }
bool has_checks_column(const EngineTraits& engine) {
  return has_floor_gate(engine) && engine.captures_modules();
}
std::string floor_of(const std::string& engine) { return engine + " floor"; }
std::string unchecked(const std::string& engine) { return engine + " unchecked"; }

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values.at(values.size() / 2);
}

std::optional<double> ratio(const StepTimes& times, const std::string& a, const std::string& b) {
  const auto above = times.block_ms.find(a), below = times.block_ms.find(b);
  if (above == times.block_ms.end() || below == times.block_ms.end()) return std::nullopt;
  std::vector<double> ratios;
  for (std::size_t i = 0; i < above->second.size(); ++i)
    ratios.push_back(above->second[i] / below->second.at(i));
  return median(ratios);
}

std::string step_table(const std::vector<StepTimes>& layouts) {
  std::string head = "| layout |", line = "| --- |", rows;
  for (const Column& column : step_columns()) {
    head += " " + column.title + " |";
    line += " ---: |";
  }
  for (const StepTimes& times : layouts) {
    rows += "| " + times.layout + " |";
    for (const Column& column : step_columns()) rows += " " + column.text(times) + " |";
    rows += "\n";
  }
  return head + "\n" + line + "\n" + rows;
}

std::string gate_table(const std::vector<StepTimes>& layouts) {
  std::string table = "| layout | gate | measured | limit | |\n| --- | --- | ---: | ---: | --- |\n";
  for (const StepTimes& times : layouts)
    for (const Gate& gate : gates(times.pipeline)) {
      const auto measured = ratio(times, gate.engine, gate.against);
      table += fmt::format("| {} | {} / {} | {} | {:.2f} | {} |\n", times.layout, gate.engine,
                           gate.against_word, times_text(measured), gate.limit,
                           measured ? verdict(*measured <= gate.limit) : "not measured");
    }
  return table;
}

std::string busy_table(const std::vector<BusyRow>& rows) {
  std::string table =
      "| layout | engine | step, ms | busy without NCCL, ms | NCCL, ms | step / (busy + NCCL) | "
      "kernels a step | in graphs |\n"
      "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |\n";
  for (const BusyRow& row : rows) {
    const bool complete = row.kernels > 0 && row.kernels >= row.graph_kernels;
    const std::string times =
        complete ? fmt::format("{:.2f} | {:.2f} | {:.2f}", row.compute_ms, row.collectives_ms,
                               row.step_ms / (row.compute_ms + row.collectives_ms))
                 : "kernels are missing from the trace | - | -";
    table += fmt::format("| {} | {} | {:.2f} | {} | {:.0f} | {:.0f} |\n", row.layout, row.name,
                         row.step_ms, times, row.kernels, row.graph_kernels);
  }
  return table;
}

std::string pool_table(const std::vector<PoolRow>& rows) {
  const auto eager = std::find_if(rows.begin(), rows.end(), [](const PoolRow& row) {
    return row.engine == name_of(kEngineTraits.front());
  });
  const std::int64_t peak_bytes = eager->step_peak_bytes;
  std::string table =
      "| engine | graph pools, MiB | of eager's step peak | limit | | step peak without pools, MiB "
      "| reserved, MiB |\n"
      "| --- | ---: | ---: | ---: | --- | ---: | ---: |\n";
  for (const PoolRow& row : rows) {
    const double share = static_cast<double>(row.pool_bytes) / static_cast<double>(peak_bytes);
    const auto engine = std::ranges::find(kEngineTraits, row.engine, name_of);
    const double limit = engine == kEngineTraits.end() ? 0 : engine->limits.pool_over_eager_peak;
    const bool gated = limit > 0;
    const std::string gate = !gated ? ""
                             : peak_bytes < kLeastActivations_bytes
                                 ? "not judged: activations below 1 GiB"
                                 : verdict(share <= limit);
    table += fmt::format("| {} | {} | {:.2f} | {} | {} | {} | {} |\n", row.engine,
                         mib(row.pool_bytes), share, gated ? fmt::format("{:.1f}", limit) : "-",
                         gate, mib(row.step_peak_bytes), mib(row.reserved_bytes));
  }
  return table;
}

}  // namespace graphproof::speed

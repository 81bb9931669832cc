#include "workloads/engines/speed/tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace graphproof::speed {
namespace {

constexpr std::int64_t kMiB = 1 << 20, kGiB = 1 << 30;

/// At most so many times as long; the floor is the engine's own. The figures are the issue's: one
/// graph has next to nothing to add to its launch, many have their launches, and stages wait for
/// each other with every one of them.
struct Gate {
  const char* engine;
  const char* against;  // empty: its floor
  double limit, pipeline_limit;
};
constexpr std::array kGates{Gate{"full_iteration", "", 1.05, 1.05}, Gate{"local", "", 1.1, 1.1},
                            Gate{"transformer_engine", "", 1.1, 1.1},
                            Gate{"local", "full_iteration", 1.15, 1.2},
                            Gate{"transformer_engine", "full_iteration", 1.15, 1.2}};
/// Pool bytes of local beside eager's peak: the graphs keep what eager frees on the way, and each
/// pool rounds up.
constexpr double kPoolLimit = 1.3;
/// Below this, 20 MiB segments decide what a pool reserves.
constexpr std::int64_t kLeastActivations_bytes = kGiB;

const char* verdict(bool met) { return met ? "met" : "**missed**"; }

std::string ms(const StepTimes& times, const std::string& way) {
  const auto found = times.block_ms.find(way);
  return found == times.block_ms.end() ? "-" : fmt::format("{:.2f}", median(found->second));
}

std::string times_text(const std::optional<double>& value) {
  return value ? fmt::format("{:.3f}", *value) : "-";
}

/// What the checks take: the median of the differences, as blocks stand beside each other.
std::string checks_ms(const StepTimes& times, const std::string& engine) {
  const auto with = times.block_ms.find(engine), without = times.block_ms.find(unchecked(engine));
  if (with == times.block_ms.end() || without == times.block_ms.end()) return "-";
  std::vector<double> differences;
  for (std::size_t b = 0; b < with->second.size(); ++b)
    differences.push_back(with->second[b] - without->second[b]);
  return fmt::format("{:.3f}", median(differences));
}

std::string mib(std::int64_t bytes) {
  return fmt::format("{:.0f}", static_cast<double>(bytes) / static_cast<double>(kMiB));
}

}  // namespace

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
  std::string table =
      "| layout | eager | full_iteration | its floor | local | its floor | transformer_engine | "
      "its floor | callables | manual | eager / local | "
      "checks of local | checks of transformer_engine |\n"
      "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: "
      "|\n";
  for (const StepTimes& times : layouts) {
    table += "| " + times.layout + " | " + ms(times, "eager") + " |";
    for (const char* engine : {"full_iteration", "local", "transformer_engine"})
      table += " " + ms(times, engine) + " | " + ms(times, floor_of(engine)) + " |";
    table += " " + ms(times, "callables") + " | " + ms(times, "manual") + " | " +
             times_text(ratio(times, "eager", "local")) + " | " + checks_ms(times, "local") +
             " | " + checks_ms(times, "transformer_engine") + " |\n";
  }
  return table;
}

std::string gate_table(const std::vector<StepTimes>& layouts) {
  std::string table = "| layout | gate | measured | limit | |\n| --- | --- | ---: | ---: | --- |\n";
  for (const StepTimes& times : layouts)
    for (const Gate& gate : kGates) {
      const std::string against = *gate.against ? gate.against : floor_of(gate.engine);
      const double limit = times.pipeline ? gate.pipeline_limit : gate.limit;
      const auto measured = ratio(times, gate.engine, against);
      table += fmt::format("| {} | {} / {} | {} | {:.2f} | {} |\n", times.layout, gate.engine,
                           *gate.against ? against : "its floor", times_text(measured), limit,
                           measured ? verdict(*measured <= limit) : "not measured");
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
    table += fmt::format("| {} | {} | {:.2f} | {} | {:.0f} | {:.0f} |\n", row.layout, row.way,
                         row.step_ms, times, row.kernels, row.graph_kernels);
  }
  return table;
}

std::string pool_table(const std::vector<PoolRow>& rows) {
  const auto eager = std::find_if(rows.begin(), rows.end(),
                                  [](const PoolRow& row) { return row.engine == "eager"; });
  const std::int64_t peak_bytes = eager->step_peak_bytes;
  std::string table =
      "| engine | graph pools, MiB | of eager's step peak | limit | | step peak beside pools, MiB "
      "| reserved, MiB |\n"
      "| --- | ---: | ---: | ---: | --- | ---: | ---: |\n";
  for (const PoolRow& row : rows) {
    const double share = static_cast<double>(row.pool_bytes) / static_cast<double>(peak_bytes);
    const bool gated = row.engine == "local";
    const std::string gate = !gated ? ""
                             : peak_bytes < kLeastActivations_bytes
                                 ? "not judged: activations below 1 GiB"
                                 : verdict(share <= kPoolLimit);
    table +=
        fmt::format("| {} | {} | {:.2f} | {} | {} | {} | {} |\n", row.engine, mib(row.pool_bytes),
                    share, gated ? fmt::format("{:.1f}", kPoolLimit) : "-", gate,
                    mib(row.step_peak_bytes), mib(row.reserved_bytes));
  }
  return table;
}

}  // namespace graphproof::speed

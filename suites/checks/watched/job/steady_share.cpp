#include "suites/checks/watched/job/steady_share.h"

#include <algorithm>
#include <optional>

#include "suites/checks/watched/job/kernel_counts.h"

namespace graphproof::checks::watched {
namespace {

struct Part {
  double part = 0, whole = 0;

  double share() const { return part / whole; }
};

std::optional<Part> kernels(const JobProcess& process) {
  const std::optional<std::int64_t> before = process.line().kernels_before_graphs;
  const KernelCounts counts = kernel_counts(process);
  if (!before || counts.incomplete || process.unseen("driver_calls")) return std::nullopt;
  const auto in_graphs = static_cast<double>(counts.in_graphs);
  return Part{in_graphs, in_graphs + static_cast<double>(counts.outside - *before)};
}

std::optional<Part> replays(const JobProcess& process) {
  std::optional<std::int64_t> first;
  for (const auto& line : process.of<record::ReplaysLine>())
    if (line.first_step) first = std::min(first.value_or(*line.first_step), *line.first_step);
  if (!first || process.line().steps <= *first) return std::nullopt;
  return Part{static_cast<double>(process.graph_launches()),
              static_cast<double>(process.line().steps - *first)};
}

/// Nothing unless every process that launched graphs has it.
void add(const WatchedJob& job, const std::string& name,
         std::optional<Part> (*of)(const JobProcess&), std::map<std::string, double>& figures) {
  Part all;
  std::optional<double> least;
  for (const JobProcess& process : job.processes) {
    if (process.graph_launches() == 0) continue;
    const std::optional<Part> one = of(process);
    if (!one || one->whole <= 0) return;
    all.part += one->part;
    all.whole += one->whole;
    least = std::min(least.value_or(one->share()), one->share());
  }
  if (!least) return;
  figures[name] = all.share();
  figures["least_" + name] = *least;
}

}  // namespace

std::map<std::string, double> steady_figures(const WatchedJob& job) {
  std::map<std::string, double> figures;
  add(job, "steady_share", kernels, figures);
  add(job, "replays_a_step", replays, figures);
  return figures;
}

}  // namespace graphproof::checks::watched

#include "suites/checks/watched/graph_table.h"

#include <algorithm>

#include "suites/checks/attempt/concat.h"
#include "suites/checks/watched/job/kernel_counts.h"
#include "suites/checks/watched/job/kernel_name.h"
#include "suites/checks/watched/job/steady_share.h"

namespace graphproof::checks::watched {
namespace {

// A leak of graphs makes thousands of rows, and more than these help no reader.
constexpr std::size_t kMostRows = 64;
constexpr std::size_t kMostKernels = 5, kMostBetween = 8;

std::vector<record::KernelCount> most_frequent(const record::WatchedGraphLine& graph) {
  std::map<std::string, std::int64_t> by_name;
  for (const record::ShapedKernel& kernel : graph.kernels) by_name[kernel.name] += kernel.count;
  std::vector<record::KernelCount> kernels;
  for (const auto& [name, count] : by_name)
    kernels.push_back({.kernel = readable_name(name), .count = count});
  std::ranges::stable_sort(kernels, std::greater<>(), &record::KernelCount::count);
  if (kernels.size() > kMostKernels) kernels.resize(kMostKernels);
  return kernels;
}

/// What its thread does between its launch of a graph before and a launch of executable graph
/// `number`, the most frequent first. `launches` is how many have such a launch before.
std::vector<record::BetweenReplays> between_replays(const JobProcess& process, std::int64_t number,
                                                    double launches) {
  std::vector<record::BetweenReplays> list;
  for (const auto& line : process.of<record::BetweenReplaysLine>())
    if (line.executable == number && line.count > 0)
      list.push_back({.what = line.what,
                      .name = readable_name(line.name),
                      .per_replay = static_cast<double>(line.count) / launches});
  std::ranges::stable_sort(list, std::greater<>(), &record::BetweenReplays::per_replay);
  if (list.size() > kMostBetween) list.resize(kMostBetween);
  return list;
}

/// The size of a pool in the last snapshot that has it.
std::optional<std::int64_t> pool_bytes(const JobProcess& process,
                                       const std::vector<std::int64_t>& pool) {
  std::optional<std::int64_t> bytes;
  for (const auto& snapshot : process.of<record::MemoryPoolsLine>())
    for (const record::PoolMemory& one : snapshot.pools)
      if (one.pool == pool) bytes = one.total_bytes;
  return bytes;
}

/// Whether all work in the window has its time.
bool whole(const record::DeviceTimeLine& line) {
  return line.dropped == 0 && line.without_times == 0 && line.all_ns() > 0;
}

/// Of the window in which it was measured; 0 for a graph that was not launched in it. Nothing where
/// there was no window, where records were lost, or where the list of graphs may lack this one.
std::optional<double> device_time_share(const JobProcess& process, std::int64_t executable) {
  for (const auto& line : process.of<record::DeviceTimeLine>()) {
    if (!whole(line) || line.unknown_graph_ns > 0) return std::nullopt;
    std::int64_t listed_ns = 0;
    for (const record::GraphDeviceTime& graph : line.graphs) {
      if (graph.executable == executable)
        return static_cast<double>(graph.ns) / static_cast<double>(line.all_ns());
      listed_ns += graph.ns;
    }
    if (listed_ns == line.graph_ns) return 0;
  }
  return std::nullopt;
}

record::GraphRow row_of(const JobProcess& process, const Executable& one,
                        const KernelCounts& kernels) {
  record::GraphRow row{.process = process.name,
                       .rank = process.line().rank,
                       .executable = one.number(),
                       .signature = one.made->graph,
                       .instantiation_bytes = one.made->bytes,
                       .replays = one.launches()};
  std::int64_t thread = one.made->thread;
  if (one.capture) {
    row.captured_at = program_line(one.capture->stack);
    row.stack = one.capture->stack;
    row.stream = one.capture->stream;
    thread = one.capture->thread;
    if (one.capture->pool) row.pool_bytes = pool_bytes(process, *one.capture->pool);
  }
  row.thread = concat(thread);
  for (const record::WatchedThread& known : process.line().threads)
    if (known.thread == thread && !known.name.empty())
      row.thread = concat(known.name, " (", thread, ")");
  if (one.graph) {
    row.nodes = one.graph->nodes;
    row.kernels = most_frequent(*one.graph);
    if (const std::int64_t all = kernels.in_graphs + kernels.outside; all > 0)
      row.launch_share =
          static_cast<double>(one.launches() * one.kernels()) / static_cast<double>(all);
  }
  row.device_time_share = device_time_share(process, one.number());
  if (one.replays) {
    row.replays_per_step_least = one.replays->per_step_least;
    row.replays_per_step_most = one.replays->per_step_most;
    if (const auto after_another = one.replays->launches_after_another) {
      const auto launches = static_cast<double>(*after_another);
      row.kernels_between = static_cast<double>(one.replays->kernels_before) / launches;
      if (auto between = between_replays(process, one.number(), launches); !between.empty())
        row.between = std::move(between);
    }
  }
  return row;
}

}  // namespace

std::vector<record::GraphRow> graph_table(const WatchedJob& job, std::vector<std::string>& notes) {
  std::vector<record::GraphRow> rows;
  for (const JobProcess& process : job.processes) {
    std::vector<Executable> all = executables(process);
    const KernelCounts kernels = kernel_counts(process);
    for (const auto& line : process.of<record::BetweenReplaysLine>())
      if (line.executable == 0)
        notes.push_back(concat(process.title(), ": ", line.count,
                               " kernels and calls between replays are not told apart"));
    if (all.size() > kMostRows) {
      notes.push_back(concat(process.title(), " made ", all.size(), " graphs; the table has the ",
                             kMostRows, " that launched most kernels"));
      std::ranges::stable_sort(all, std::greater<>(), [](const Executable& one) {
        return one.launches() * one.kernels();
      });
      all.resize(kMostRows);
      std::ranges::sort(all, {}, &Executable::number);
    }
    for (const Executable& one : all) rows.push_back(row_of(process, one, kernels));
  }
  return rows;
}

std::map<std::string, double> watched_figures(const WatchedJob& job) {
  std::map<std::string, double> figures;
  const auto add = [&](const char* name, double value) { figures[name] += value; };
  const auto largest = [&](const char* name, double value) {
    figures[name] = std::max(figures[name], value);
  };
  KernelCounts all;
  std::int64_t graph_ns = 0, device_ns = 0, outside_ns = 0, outside = 0, steps = 0;
  for (const JobProcess& process : job.processes) {
    for (const auto& line : process.of<record::DeviceTimeLine>()) {
      if (!whole(line)) continue;
      graph_ns += line.graph_ns;
      device_ns += line.all_ns();
      outside_ns += line.kernel_ns;
      outside += line.kernels;
      steps += line.steps;
      if (line.seconds > 0)
        largest("device_busy_share",
                std::min(1.0, static_cast<double>(line.all_ns()) / (1e9 * line.seconds)));
    }
    largest("probe_start_ms", process.line().start_ms);
    if (!process.stopped_inside().empty()) add("stopped_inside_calls", 1);
    if (!process.has_graphs()) continue;
    const KernelCounts kernels = kernel_counts(process);
    all.in_graphs += kernels.in_graphs;
    all.outside += kernels.outside;
    if (kernels.incomplete) all.incomplete = kernels.incomplete;
    add("graphs", static_cast<double>(process.line().executables));
    add("graph_launches", static_cast<double>(process.graph_launches()));
    add("eager_kernels", static_cast<double>(kernels.outside));
    largest("steps", static_cast<double>(process.line().steps));
    largest("live_graphs", static_cast<double>(process.line().executables_live_most));
    double taken = 0;
    bool known = false;
    for (const auto& made : process.of<record::ExecutableGraphLine>())
      if (made.bytes) {
        known = true;
        taken += static_cast<double>(*made.bytes);
      }
    if (known) largest("instantiation_bytes", std::max(0.0, taken));
    for (const auto& capture : process.of<record::WatchedCaptureLine>())
      if (capture.ended) largest("capture_ms", capture.ms);
  }
  if (device_ns > 0)
    figures["device_time_share"] = static_cast<double>(graph_ns) / static_cast<double>(device_ns);
  if (outside > 0)
    figures["kernel_us"] = static_cast<double>(outside_ns) / (1000 * static_cast<double>(outside));
  if (steps > 0)
    figures["kernels_per_step"] = static_cast<double>(outside) / static_cast<double>(steps);
  figures.merge(steady_figures(job));
  if (!all.incomplete && all.in_graphs + all.outside > 0) figures["graph_share"] = all.share();
  return figures;
}

}  // namespace graphproof::checks::watched

// D65: device memory that the driver takes for each executable graph. It is about as large as the
// number of nodes; programs reserve it by what the first graphs took.
#include <algorithm>

#include "suites/checks/attempt/concat.h"
#include "suites/checks/watched/job/watched_judgement.h"

namespace graphproof::checks::watched::d65 {
namespace {

// The driver takes memory in pieces of 2 MiB and more, so a forecast needs some graphs, and what
// is below a quarter of a GiB tells nothing.
constexpr std::size_t kFirstGraphs = 4;
constexpr double kMostOverForecast = 2.0;
constexpr double kLeastBytes = 256.0 * 1024 * 1024;

struct Taken {
  double bytes = 0, nodes = 0;
};

}  // namespace

record::CheckResult graph_memory(WatchedJudgement& judgement, const WatchedJob& job) {
  double most = 0;
  for (const JobProcess& process : job.processes) {
    if (!process.has_graphs()) continue;
    Taken first, rest;
    std::size_t graphs = 0;
    for (const Executable& one : executables(process)) {
      if (!one.made->bytes || !one.graph) continue;
      Taken& of = graphs++ < kFirstGraphs ? first : rest;
      // Memory that another thread gave back at the same time makes the number negative.
      of.bytes += std::max(0.0, static_cast<double>(*one.made->bytes));
      of.nodes += static_cast<double>(one.graph->total);
    }
    most = std::max(most, first.bytes + rest.bytes);
    if (graphs <= kFirstGraphs) {
      judgement.excuse(process, concat("no more than ", kFirstGraphs, " graphs"));
      continue;
    }
    judgement.confirm(process);
    const double forecast = first.nodes == 0 ? 0 : first.bytes / first.nodes * rest.nodes;
    if (rest.bytes <= kMostOverForecast * forecast || rest.bytes - forecast < kLeastBytes) continue;
    judgement.defect(
        process,
        {.what = concat("the ", graphs - kFirstGraphs,
                        " later graphs take more memory of the "
                        "driver than the first ones foretell"),
         .got = concat(rest.bytes / 1024 / 1024, " MiB"),
         .want = concat("about ", forecast / 1024 / 1024, " MiB, by their nodes"),
         .why = "a program that reserves memory by its first graphs runs out of it at a later one",
         .next = "instantiate all graphs before the rest of the memory is given away, or make "
                 "fewer and smaller graphs"});
  }
  return judgement.result(
      concat("at most ", most / 1024 / 1024, " MiB in a process, as the first graphs foretell"),
      "memory in proportion to the nodes");
}

}  // namespace graphproof::checks::watched::d65

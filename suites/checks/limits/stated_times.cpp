// D44: the times of steps keep the limits that the case states. Eager and graph steps alternate in
// blocks, so that a machine which becomes slower with time slows both, and each block gives one
// ratio. The interval of their mean decides: only if the whole of it is beyond the limit, the graph
// is too slow, and only if none of it is, the graph is fast enough.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "matrix/expression/measured_limit.h"
#include "reports/statistics/intervals.h"
#include "suites/checks/attempt/arms.h"
#include "suites/checks/attempt/concat.h"
#include "suites/checks/attempt/judgement.h"
#include "suites/checks/attempt/launches.h"

namespace graphproof::checks::d44 {
namespace {

using record::PairedBlockLine;
using Times = std::map<std::string, double>;  // quantity -> ms

/// Whether a block measured what it should have: whole steps, those of the graph arm from graphs.
bool sound(Judgement& judgement, const RankFiles& files, const PairedBlockLine& line) {
  const std::int64_t launches = line.steps * expected_launches(judgement, files).launches_per_step;
  for (const double ms : {line.eager_ms, line.eager_launch_ms, line.graph_ms, line.graph_launch_ms})
    if (!std::isfinite(ms) || ms <= 0) {
      judgement.defect({.rank = files.rank,
                        .step = line.block,
                        .what = concat("a time of block ", line.block, " is no time"),
                        .got = shown(ms),
                        .want = "more than 0 ms",
                        .why = "what was not measured keeps no limit"});
      return false;
    }
  if (line.steps > 0 && line.launches == launches) return true;
  judgement.defect(
      {.rank = files.rank,
       .step = line.block,
       .what = concat("the graph steps of block ", line.block, " did not launch their graphs"),
       .got = concat(line.launches, " graph launches in ", line.steps, " steps"),
       .want = concat(launches, " launches"),
       .why = "the time of an eager step would pass for that of a graph"});
  return false;
}

/// The times of every block, each of the slowest rank, because all ranks wait for it. Empty if a
/// rank lacks a block.
std::vector<Times> times_of_blocks(Judgement& judgement, const Attempt& attempt) {
  std::map<std::int64_t, Times> blocks;
  std::size_t complete = 0;  // ranks
  for (const RankFiles& files : attempt.ranks) {
    std::set<std::int64_t> seen;
    std::int64_t planned = reports::kFewestPairs;
    bool whole = true;
    for (const PairedBlockLine& line : judgement.lines<PairedBlockLine>(files)) {
      planned = std::max(planned, line.blocks);
      whole &= sound(judgement, files, line);
      seen.insert(line.block);
      Times& times = blocks[line.block];
      for (const auto& [quantity, ms] :
           {std::pair{"eager_step", line.eager_ms}, std::pair{"graph_step", line.graph_ms},
            std::pair{"eager_launch", line.eager_launch_ms},
            std::pair{"graph_launch", line.graph_launch_ms}})
        times[quantity] = std::max(times[quantity], ms);
    }
    for (std::int64_t block = 0; block < planned; ++block)
      if (!seen.contains(block)) {
        judgement.absent<PairedBlockLine>(files, concat("of block ", block));
        whole = false;
        break;
      }
    if (!whole) continue;
    judgement.confirm(files.rank);
    ++complete;
  }
  std::vector<Times> result;
  if (complete == attempt.ranks.size())
    for (const auto& [block, times] : blocks) result.push_back(times);
  return result;
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

/// "graph_step 7.6 ms, eager_step 5.2 ms": medians over the blocks.
std::string shown_times(const matrix::MeasuredLimit& limit, const std::vector<Times>& blocks) {
  std::string text;
  for (const std::string& quantity : limit.named(matrix::kTimeQuantities)) {
    std::vector<double> values;
    for (const Times& times : blocks) values.push_back(times.at(quantity));
    text += concat(text.empty() ? "" : ", ", quantity, " ", median(values), " ms");
  }
  return text;
}

/// The rank with the slowest steps from graphs, to name in a message.
int slowest_rank(const Attempt& attempt) {
  int slowest = 0;
  double most = 0;
  for (const RankFiles& files : attempt.ranks) {
    double sum = 0;
    for (const PairedBlockLine& line : files.lines<PairedBlockLine>()) sum += line.graph_ms;
    if (sum > most) {
      most = sum;
      slowest = files.rank;
    }
  }
  return slowest;
}

}  // namespace

/// For each limit, the 95 % interval of the geometric mean, over the blocks, of the factor by which
/// it is exceeded. The limit is kept if the interval ends at 1 or below, and exceeded if it begins
/// above 1; otherwise the check is unexercised.
record::CheckResult stated_times(Judgement& judgement, const Attempt& attempt) {
  if (shared_gpus(attempt)) {
    for (const RankFiles& files : attempt.ranks) judgement.confirm(files.rank);
    judgement.unexercised(
        "ranks of this case shared GPUs, where each waits for the others' kernels",
        "run the case with a GPU for each rank");
    return judgement.result("", "times of ranks with GPUs of their own");
  }
  const std::vector<Times> blocks = times_of_blocks(judgement, attempt);
  if (blocks.empty()) return judgement.result("", "");
  const std::string text = attempt.axes.text("perf_limit");
  std::string summary;
  for (const matrix::MeasuredLimit& limit :
       matrix::parse_limit(text, matrix::Origin::option("perf_limit", text))) {
    std::vector<double> logarithms;
    for (const Times& times : blocks)
      logarithms.push_back(std::log(limit.excess([&](const std::string& name) {
        const auto found = times.find(name);
        return found != times.end() ? found->second
                                    : static_cast<double>(attempt.axes.integer(name));
      })));
    const reports::ConfidenceInterval interval = reports::bootstrap_mean(logarithms);
    const std::string measured =
        concat(std::exp(reports::mean(logarithms)), " of the limit, ", std::exp(interval.low),
               " to ", std::exp(interval.high), " (95 %) over ", blocks.size(), " blocks; ",
               shown_times(limit, blocks));
    summary += concat(summary.empty() ? "" : "; ", limit.text, ": ", measured);
    // `!(a <= b)`: an interval that is no number, of a limit without a value, keeps nothing.
    if (interval.low > 0 || !(interval.high >= interval.low)) {
      judgement.defect({.rank = slowest_rank(attempt),
                        .step = std::nullopt,
                        .what = concat("the times exceed the limit `", limit.text, "`"),
                        .got = measured,
                        .want = "an interval that reaches 1.0 of the limit or less",
                        .why = "a graph that is captured and slower costs its memory and its "
                               "capture for nothing"});
    } else if (interval.high > 0) {
      judgement.unexercised(
          concat("the measurement does not decide `", limit.text, "`: ", measured),
          "run the case alone on a quiet machine, with a larger model, or state a wider limit");
    }
  }
  return judgement.result(summary, "an interval that ends at 1.0 of the limit or less");
}

}  // namespace graphproof::checks::d44

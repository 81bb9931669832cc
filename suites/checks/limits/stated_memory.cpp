// D31: the memory of the solo arms keeps the limits that the case states, such as at most twice the
// peak of eager for graphs of a whole step. Memory that grows from step to step is judged by the
// other checks of D31 without any limit.
#include <algorithm>
#include <map>

#include "matrix/expression/measured_limit.h"
#include "suites/checks/attempt/arms.h"
#include "suites/checks/attempt/concat.h"
#include "suites/checks/attempt/foreign_memory.h"
#include "suites/checks/attempt/judgement.h"

namespace graphproof::checks::d31 {
namespace {

using record::MemoryLine;

constexpr double kMebibyte = 1024.0 * 1024;

/// The bytes that a solo arm took on a rank, beyond what tensors of other arms owned before it was
/// built: at most after any of its steps. The allocator keeps what it has reserved until the arm is
/// dropped, so this covers the peak within a step too. What it has reserved for other arms and does
/// not use counts, because the arm may use it: at most a segment where no more is cached. Pools of
/// graphs that another arm keeps do not, because no other graph allocates in them.
struct Taken {
  double reserved = 0, device = 0;
  bool device_known = true;
};

std::optional<Taken> taken(Judgement& judgement, const RankFiles& files, std::string_view arm) {
  const MemoryLine *before = nullptr, *last = nullptr;
  Taken most;
  for (const MemoryLine* line : judgement.find<MemoryLine>(files, arm)) {
    if (line->when == "before") before = line;
    if (line->when != "step" || !before) continue;
    last = line;
    const std::int64_t unused =
        std::max<std::int64_t>(before->reserved - before->pool - before->allocated, 0);
    most.reserved =
        std::max(most.reserved, static_cast<double>(line->reserved - before->reserved + unused));
    most.device_known &= line->device && before->device;
    if (most.device_known)
      most.device =
          std::max(most.device, static_cast<double>(*line->device - *before->device + unused));
  }
  if (!before || !last || last->step + 1 < judgement.expected().steps) {
    judgement.absent<MemoryLine>(
        files, concat("of arm ", arm, before ? " after its last step" : " before it was built"));
    return std::nullopt;
  }
  return most;
}

}  // namespace

/// On every rank, each comparison of the limit holds.
record::CheckResult stated_memory(Judgement& judgement, const Attempt& attempt) {
  const std::string text = attempt.axes.text("memory_limit");
  const auto limits = matrix::parse_limit(text, matrix::Origin::option("memory_limit", text));
  const std::string foreign = foreign_memory(attempt);
  std::map<std::string, double> closest;  // by limit: the largest share of it on a rank
  for (const RankFiles& files : attempt.ranks) {
    const auto eager = taken(judgement, files, "solo_eager"),
               graph = taken(judgement, files, "solo_graph");
    if (!eager || !graph) continue;
    const std::map<std::string, double> measured = {{"eager_peak", eager->reserved},
                                                    {"graph_peak", graph->reserved},
                                                    {"eager_device", eager->device},
                                                    {"graph_device", graph->device}};
    for (const matrix::MeasuredLimit& limit : limits) {
      const auto names = limit.named(matrix::kMemoryQuantities);
      const bool of_device = std::ranges::any_of(
          names, [](const std::string& name) { return name.ends_with("_device"); });
      judgement.confirm(files.rank);
      if (of_device && (!foreign.empty() || !eager->device_known || !graph->device_known)) {
        judgement.unexercised(
            concat("the driver counts the memory of a whole GPU",
                   foreign.empty() ? ", and this evidence lacks its count" : "; " + foreign),
            "run the case with a GPU for each rank, or limit graph_peak");
        continue;
      }
      const double excess = limit.excess([&](const std::string& name) {
        const auto found = measured.find(name);
        return found != measured.end() ? found->second
                                       : static_cast<double>(attempt.axes.integer(name));
      });
      closest[limit.text] = std::max(closest[limit.text], excess);
      if (excess <= 1) continue;
      std::string got;
      for (const std::string& name : names)
        got += concat(got.empty() ? "" : ", ", name, " ", measured.at(name) / kMebibyte, " MiB");
      judgement.defect({.rank = files.rank,
                        .step = std::nullopt,
                        .what = concat("the memory exceeds the limit `", limit.text, "`"),
                        .got = concat(excess, " of the limit: ", got),
                        .want = "1.0 of the limit at most",
                        .why = "a job that fits without graphs runs out of memory with them"});
    }
  }
  std::string summary;
  for (const auto& [limit, share] : closest)
    summary += concat(summary.empty() ? "" : "; ", limit, ": ", share, " of the limit at most");
  return judgement.result(concat(summary, " on ", attempt.ranks.size(), " ranks"),
                          "1.0 of every limit at most");
}

}  // namespace graphproof::checks::d31

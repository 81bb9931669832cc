// D07: the tensors whose addresses a graph captured have not moved.
#include <algorithm>
#include <map>
#include <set>

#include "suites/checks/attempt/arms.h"
#include "suites/checks/attempt/concat.h"
#include "suites/checks/attempt/judgement.h"

namespace graphproof::checks::d07 {

using record::AddressLine;

/// Every graph has an `address` line in every watched replay, with the same number of registered
/// tensors, and none of them moved.
record::CheckResult static_addresses(Judgement& judgement, const Attempt& attempt) {
  if (!judgement.has_replays()) return judgement.result("", "");
  for (const RankFiles& files : attempt.ranks) {
    const auto lines = judgement.lines<AddressLine>(files);
    // By arm: the graphs that are launched in each step, without that of the evaluation.
    std::map<std::string_view, std::set<std::string_view>> graphs;
    for (const AddressLine& line : lines)
      if (line.graph != "validation") graphs[line.arm].insert(line.graph);
    for (const auto& [arm, step] : watched_replays(attempt, judgement.expected())) {
      const auto of_step = judgement.find<AddressLine>(files, arm, step);
      if (of_step.empty()) judgement.absent<AddressLine>(files, concat("of arm ", arm), step);
      for (const std::string_view graph : graphs[arm])
        if (std::ranges::none_of(of_step,
                                 [&](const AddressLine* line) { return line->graph == graph; }))
          judgement.absent<AddressLine>(files, concat("of graph ", graph, " of arm ", arm), step);
    }
    std::map<std::string, std::int64_t> registered_at_first;  // by arm and graph
    for (const AddressLine& line : lines) {
      const auto& [arm, step, graph, registered, moved] = line;
      const std::int64_t first =
          registered_at_first.try_emplace(arm + "/" + graph, registered).first->second;
      if (!moved.empty()) {
        judgement.defect(
            {.rank = files.rank,
             .step = step,
             .what = concat("`", moved.front().tensor, "` of graph ", graph,
                            " moved after the capture, as did ", moved.size() - 1, " others"),
             .got = concat("address ", moved.front().now, " before the replay of step ", step,
                           " in arm ", arm),
             .want = concat(moved.front().captured, ", as captured"),
             .why = "a replay reads the captured address, so the step ran on stale data"});
      } else if (registered <= 0 || registered != first) {
        judgement.defect(
            {.rank = files.rank,
             .step = step,
             .what = concat("the address registry of graph ", graph, " changed in arm ", arm),
             .got = concat(registered, " tensors registered at step ", step),
             .want = concat(first, ", as before the first replay, and at least one"),
             .why = "no check notices when an unregistered address moves"});
      } else {
        judgement.confirm(files.rank);
      }
    }
  }
  return judgement.result(
      concat("nothing moved before ", watched_replays(attempt, judgement.expected()).size(),
             " replays on ", attempt.ranks.size(), " ranks"),
      "every address as captured");
}

}  // namespace graphproof::checks::d07

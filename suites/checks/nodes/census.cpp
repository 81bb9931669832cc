// D15: captures of one step hold the same nodes in every arm.
#include <map>
#include <set>

#include "suites/checks/attempt/arms.h"
#include "suites/checks/attempt/capture.h"
#include "suites/checks/attempt/concat.h"
#include "suites/checks/nodes/graph_nodes.h"
#include "workloads/engine_traits/engine_traits.h"

namespace graphproof::checks::d15 {
namespace {

using record::CaptureLine;

/// The graphs that `arm` has to capture: those that another arm captured, and those that the case's
/// axes ask for. Below evidence revision 5 the capture of the evaluation has no line.
std::set<std::string> wanted_graphs(const Attempt& attempt, std::string_view arm,
                                    const std::map<std::string, std::set<std::string>>& captured) {
  std::set<std::string> graphs;
  for (const auto& [other, own] : captured)
    if (!rolls_out(other)) graphs.insert(own.begin(), own.end());
  const Axes& axes = attempt.axes;
  if (axes.flag("optimizer_graph")) graphs.insert("optimizer");
  const bool evaluates = engines::traits_of(axes.text("impl")).captures_evaluation &&
                         axes.text("schedule") == "train-eval-train";
  if (evaluates && evidence_revision(attempt) >= 5) graphs.insert("validation");
  if (arm != "lockstep_graph") graphs.erase("validation");  // the other arms do not evaluate
  return graphs;
}

}  // namespace

/// Every graph arm captured the same graphs, with the same nodes in the same order, and as many
/// nodes as the counts by node type add up to.
record::CheckResult census(Judgement& judgement, const Attempt& attempt) {
  if (!judgement.has_replays()) return judgement.result("", "");
  for (const RankFiles& files : attempt.ranks) {
    std::map<std::string, const CaptureLine*> first;        // by graph
    std::map<std::string, std::set<std::string>> captured;  // by arm
    for (const CaptureLine* capture : successful_captures(judgement, files)) {
      captured[capture->arm].insert(capture->graph);
      if (!nodes_add_up(judgement, files, *capture)) continue;
      const CaptureLine& other = *first.try_emplace(capture->graph, capture).first->second;
      if (other.signature != capture->signature || other.nodes != capture->nodes) {
        judgement.defect({.rank = files.rank,
                          .step = std::nullopt,
                          .what = concat(capture_name(*capture), " holds other nodes than ",
                                         capture_name(other)),
                          .got = nodes_text(*capture),
                          .want = nodes_text(other),
                          .why = "two captures of the same step contain different work"});
      }
      judgement.confirm(files.rank);
    }
    for (const char* arm : graph_arms(attempt)) {
      if (!captured.contains(arm))
        judgement.absent(files, concat("successful `capture` line of arm ", arm));
      for (const std::string& graph : wanted_graphs(attempt, arm, captured))
        if (!captured[arm].contains(graph))
          judgement.absent(files,
                           concat("successful `capture` line of graph ", graph, " of arm ", arm));
    }
  }
  return judgement.result(
      concat("the same nodes in every capture on ", attempt.ranks.size(), " ranks"),
      "one signature for each graph");
}

}  // namespace graphproof::checks::d15

// D15 and D24: captures of one step hold the same nodes, in every arm and on every rank of one
// role.
#include <map>
#include <set>

#include "suites/checks/attempt/arms.h"
#include "suites/checks/attempt/capture.h"
#include "suites/checks/attempt/concat.h"
#include "suites/checks/attempt/detectors.h"
#include "suites/checks/attempt/judgement.h"
#include "workloads/engine_traits/engine_traits.h"

namespace graphproof::checks {
namespace {

using record::CaptureLine;

/// Nodes by kind add up to the whole, and there is something to compare.
bool counted(Judgement& judgement, const RankFiles& files, const CaptureLine& capture) {
  std::int64_t sum = 0;
  for (const auto& [type, count] : capture.census) sum += count;
  if (capture.nodes > 0 && capture.nodes == sum && !capture.signature.empty()) return true;
  judgement.defect({.rank = files.rank,
                    .step = std::nullopt,
                    .what = concat("the census of ", capture_name(capture), " does not add up"),
                    .got = concat(capture.nodes, " nodes, ", sum, " counted by kind, signature `",
                                  capture.signature, "`"),
                    .want = "as many nodes as counted, at least one, and a signature",
                    .why = "an empty or miscounted graph equals any other of its sort"});
  return false;
}

/// "391 nodes, signature 5566778899aabbcc"
std::string nodes_text(const CaptureLine& capture) {
  return concat(capture.nodes, " nodes, signature ", capture.signature);
}

/// The graphs that `arm` has to capture: those that another arm did, and the named ones that the
/// case asks for. Before revision 5 the capture of evaluation left no line.
std::set<std::string> wanted_graphs(const Attempt& attempt, std::string_view arm,
                                    const std::map<std::string, std::set<std::string>>& captured) {
  std::set<std::string> graphs;
  for (const auto& [other, own] : captured) graphs.insert(own.begin(), own.end());
  const Axes& axes = attempt.axes;
  if (axes.flag("optimizer_graph")) graphs.insert("optimizer");
  const bool evaluates = engines::traits_of(axes.text("impl")).captures_evaluation &&
                         axes.text("schedule") == "train-eval-train";
  if (evaluates && evidence_revision(attempt) >= 5) graphs.insert("validation");
  if (arm != "lockstep_graph") graphs.erase("validation");  // the other arms evaluate nothing
  return graphs;
}

/// Whether two ranks of one role may have captured kernels of other names. Context parallel ranks
/// compute a mamba layer with other slices of the same parameters, and where a slice begins decides
/// whether a kernel may load in vectors: seen on two H200, each time with as many nodes of each
/// kind. Their collectives are D25's.
bool other_slices(const Axes& axes, int left, int right) {
  const auto position = [&](int rank) { return rank / axes.integer("tp") % axes.integer("cp"); };
  return axes.text("model") == "hybrid" && position(left) != position(right);
}

}  // namespace

record::CheckResult census(const Attempt& attempt) {
  Judgement judgement("D15.census", attempt);
  if (!judgement.for_graph_cases()) return judgement.result("", "");
  for (const RankFiles& files : attempt.ranks) {
    std::map<std::string, const CaptureLine*> first;        // by graph
    std::map<std::string, std::set<std::string>> captured;  // by arm
    for (const CaptureLine* capture : successful_captures(judgement, files)) {
      captured[capture->arm].insert(capture->graph);
      if (!counted(judgement, files, *capture)) continue;
      const CaptureLine& other = *first.try_emplace(capture->graph, capture).first->second;
      if (other.signature != capture->signature || other.nodes != capture->nodes) {
        judgement.defect({.rank = files.rank,
                          .step = std::nullopt,
                          .what = concat(capture_name(*capture), " holds other nodes than ",
                                         capture_name(other)),
                          .got = nodes_text(*capture),
                          .want = nodes_text(other),
                          .why = "two captures of the same step recorded different work"});
      }
      judgement.saw(files.rank);
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

record::CheckResult rank_signatures(const Attempt& attempt) {
  Judgement judgement("D24.rank_signatures", attempt);
  if (!judgement.for_graph_cases() || !judgement.for_replicated_roles())
    return judgement.result("", "");
  for (const std::vector<int>& role : roles(attempt.axes, attempt.context.world_size)) {
    // By arm and graph: the first rank that has it.
    std::map<std::string, std::pair<int, const CaptureLine*>> first;
    for (const int rank : role) {
      const RankFiles& files = attempt.ranks[rank];
      std::set<std::string> arms;
      for (const CaptureLine* capture : successful_captures(judgement, files)) {
        arms.insert(capture->arm);
        if (!counted(judgement, files, *capture)) continue;
        const auto& [first_rank, other] =
            first.try_emplace(capture_name(*capture), rank, capture).first->second;
        const bool same = other_slices(attempt.axes, first_rank, rank)
                              ? other->census == capture->census
                              : other->signature == capture->signature;
        if (!same)
          judgement.defect({.rank = rank,
                            .step = std::nullopt,
                            .what = concat(capture_name(*capture), " of rank ", rank,
                                           " differs from that of rank ", first_rank),
                            .got = nodes_text(*capture),
                            .want = nodes_text(*other),
                            .why = "ranks that replay different graphs wait for each other or mix "
                                   "up their collectives"});
        judgement.saw(rank);
      }
      for (const char* arm : graph_arms(attempt))
        if (!arms.contains(arm))
          judgement.absent(files, concat("successful `capture` line of arm ", arm));
    }
    // A graph that one rank of the role lacks differs too.
    for (const auto& [name, owner] : first) {
      for (const int rank : role) {
        bool has = false;
        for (const CaptureLine* capture : successful_captures(judgement, attempt.ranks[rank]))
          has |= capture_name(*capture) == name;
        if (!has)
          judgement.absent(attempt.ranks[rank], concat("successful capture of ", name,
                                                       ", which rank ", owner.first, " has"));
      }
    }
  }
  return judgement.result(concat("equal on ", attempt.ranks.size(), " ranks"),
                          "one signature for each role");
}

}  // namespace graphproof::checks

// D24: all ranks of one pipeline stage capture the same graphs.
#include <map>
#include <set>

#include "suites/checks/attempt/arms.h"
#include "suites/checks/attempt/capture.h"
#include "suites/checks/attempt/concat.h"
#include "suites/checks/nodes/graph_nodes.h"

namespace graphproof::checks::d24 {
namespace {

using record::CaptureLine;

/// The place of a rank among the context parallel ranks.
std::int64_t position(const Axes& axes, int rank) {
  return rank / axes.integer("tp") % axes.integer("cp");
}

/// Whether two ranks of one stage may have captured kernels with different names. Context parallel
/// ranks compute a mamba layer with different slices of the same parameters, and the alignment of a
/// slice decides whether a kernel can use vector loads. On two H200 the names differed, while the
/// number of nodes of each type was always the same. D25 judges their collectives.
bool different_slices(const Axes& axes, int left, int right) {
  return axes.text("model") == "hybrid" && position(axes, left) != position(axes, right);
}

/// Whether two ranks of one stage do different work. Transformer Engine's attention leaves out what
/// a causal mask hides, so each place in the ring attends to other pieces of the sequence: on two
/// H200 the first rank of two captured 614 nodes, and the second 594.
bool different_work(const Axes& axes, int left, int right) {
  return axes.text("subject") != "reference" && position(axes, left) != position(axes, right);
}

}  // namespace

/// All ranks of one stage that do the same work have equal graph signatures.
record::CheckResult rank_signatures(Judgement& judgement, const Attempt& attempt) {
  if (!judgement.has_replays()) return judgement.result("", "");
  for (const std::vector<int>& stage : ranks_by_stage(attempt.axes, attempt.context.world_size)) {
    // By place, arm and graph: the first rank that has it. All places are one if they do the same.
    std::map<std::pair<std::int64_t, std::string>, std::pair<int, const CaptureLine*>> first;
    const auto place = [&](int rank) {
      return different_work(attempt.axes, stage.front(), rank) ? position(attempt.axes, rank) : 0;
    };
    for (const int rank : stage) {
      const RankFiles& files = attempt.ranks[rank];
      std::set<std::string> arms;
      for (const CaptureLine* capture : successful_captures(judgement, files)) {
        arms.insert(capture->arm);
        if (!nodes_add_up(judgement, files, *capture)) continue;
        const auto& [first_rank, other] =
            first.try_emplace({place(rank), capture_name(*capture)}, rank, capture).first->second;
        const bool same = different_slices(attempt.axes, first_rank, rank)
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
        judgement.confirm(rank);
      }
      for (const char* arm : graph_arms(attempt))
        if (!arms.contains(arm))
          judgement.absent(files, concat("successful `capture` line of arm ", arm));
    }
    // A graph that one rank of the stage lacks is a difference, too.
    for (const auto& [key, owner] : first) {
      const auto& [where, name] = key;
      for (const int rank : stage) {
        if (place(rank) != where) continue;
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
                          "one signature for each pipeline stage");
}

}  // namespace graphproof::checks::d24

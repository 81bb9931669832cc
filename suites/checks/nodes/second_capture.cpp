// D84: a step that is captured a second time, after the host has moved on, gives the same graphs.
#include <algorithm>
#include <map>
#include <set>

#include "suites/checks/attempt/arms.h"
#include "suites/checks/attempt/capture.h"
#include "suites/checks/attempt/concat.h"

namespace graphproof::checks::d84 {
namespace {

using record::NodeDifference;
using record::NodeDumpLine;
using record::SecondCaptureLine;

/// The arm that captures twice.
constexpr const char* kArm = "solo_graph";

std::string place(const SecondCaptureLine& line, const NodeDifference& one) {
  return concat("node ", one.node, one.name.empty() ? "" : concat(" (", one.name, ")"),
                " of graph ", line.graph);
}

std::string kinds_text(const std::map<std::string, std::int64_t>& kinds) {
  std::string text;
  for (const auto& [kind, count] : kinds)
    text += concat(text.empty() ? " (" : ", ", count, " ", kind);
  return text.empty() ? "" : text + ")";
}

/// What most likely makes two captures differ in this.
std::string cause(const NodeDifference& one) {
  if (one.what == "nodes" || one.what == "kernel")
    return "the host took another branch, and replays go on with the one of the capture";
  if (one.what == "launch")
    return "the host chose another launch, and replays go on with the one of the capture";
  if (one.what == "edges")
    return "the host ordered its streams differently, and replays go on with the order of the "
           "capture";
  if (one.second.find("memory") != std::string::npos || one.second.starts_with("pool"))
    return "the host passed other memory, and replays go on with the address of the capture";
  return "the host passed a number by value (a rate, a counter, a seed, the content of a file), "
         "and replays go on with that of the capture";
}

Defect defect_of(const RankFiles& files, const SecondCaptureLine& line, bool dumped) {
  const NodeDifference& one = line.found.front();
  const bool counts = one.what == "nodes";
  return {.rank = files.rank,
          .step = std::nullopt,
          .what = counts ? concat("a second capture of graph ", line.graph, " holds ", one.second,
                                  " nodes, first at ", place(line, one))
                         : concat(one.what, " of ", place(line, one),
                                  " is another one in a second capture"),
          .got = counts ? concat(one.second, " nodes", kinds_text(line.kinds_again), " in step ",
                                 line.step_again)
                        : concat(one.second, " in step ", line.step_again, ", ", line.differing - 1,
                                 " more differences"),
          .want = counts ? concat(one.first, " nodes", kinds_text(line.kinds), ", as in step ",
                                  line.step)
                         : concat(one.first, ", as in step ", line.step),
          .why = concat(
              cause(one),
              dumped ? concat("; both captures are in ", "rank-", files.rank, ".nodes.txt") : "")};
}

}  // namespace

/// Every graph of solo_graph has a line `second_capture`. Step, learning rate and inputs were other
/// ones, nodes were compared, and nothing differs. Arguments of kernels that cannot be read count
/// for nothing; if no argument could be read in any graph, the check is unexercised.
record::CheckResult second_capture(Judgement& judgement, const Attempt& attempt) {
  if (!judgement.has_replays()) return judgement.result("", "");
  std::int64_t nodes = 0, arguments = 0, unread = 0;
  for (const RankFiles& files : attempt.ranks) {
    std::set<std::string> compared;
    const bool dumped = judgement.first<NodeDumpLine>(files) != nullptr;
    for (const SecondCaptureLine* line : judgement.find<SecondCaptureLine>(files, kArm)) {
      compared.insert(line->graph);
      nodes += line->nodes;
      arguments += line->arguments;
      unread += line->unread;
      if (line->differing > 0 && !line->found.empty()) {
        judgement.defect(defect_of(files, *line, dumped));
      } else if (line->differing > 0 || line->nodes <= 0 || line->nodes != line->nodes_again ||
                 line->kinds != line->kinds_again || line->edges != line->edges_again) {
        judgement.defect(
            {.rank = files.rank,
             .step = std::nullopt,
             .what = concat("the two captures of graph ", line->graph, " do not hold the same"),
             .got = concat(line->nodes_again, " nodes, ", line->edges_again, " edges",
                           kinds_text(line->kinds_again), ", ", line->differing, " differences"),
             .want = concat(line->nodes, " nodes, above zero, ", line->edges, " edges",
                            kinds_text(line->kinds), ", none"),
             .why = "a graph without its nodes cannot be compared"});
      } else if (line->step == line->step_again ||
                 line->learning_rate == line->learning_rate_again) {
        judgement.defect(
            {.rank = files.rank,
             .step = std::nullopt,
             .what = concat("graph ", line->graph,
                            " was captured twice with the same state of the host"),
             .got = concat("steps ", line->step, " and ", line->step_again, ", learning rates ",
                           line->learning_rate, " and ", line->learning_rate_again),
             .want = "another step and another learning rate",
             .why = "a value that the capture keeps shows only if it changes"});
      } else {
        judgement.confirm(files.rank);
      }
    }
    bool any = false;
    for (const record::CaptureLine* capture : successful_captures(judgement, files)) {
      if (capture->arm != kArm) continue;
      any = true;
      if (!compared.contains(capture->graph))
        judgement.absent<SecondCaptureLine>(files, concat("of ", capture_name(*capture)));
    }
    if (!any) judgement.absent(files, concat("successful `capture` line of arm ", kArm));
  }
  if (arguments == 0 && nodes > 0)
    judgement.unexercised("the arguments of no kernel could be read",
                          "use a driver that supports CUDA 12.4 or newer");
  return judgement.result(
      concat(arguments, " arguments of ", nodes, " nodes are equal in both captures",
             unread > 0 ? concat("; those of ", unread, " nodes cannot be read") : "", ", on ",
             attempt.ranks.size(), " ranks"),
      "equal nodes, edges and arguments");
}

}  // namespace graphproof::checks::d84

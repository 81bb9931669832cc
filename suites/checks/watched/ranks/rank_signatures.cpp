// D24 in a watched run: ranks that communicate alike captured the same work. Which ranks should is
// not stated anywhere, so ranks are compared whose captures hold the same calls of NCCL in the same
// order; and the collectives of one communicator have to be the same on all its ranks.
#include <algorithm>
#include <map>
#include <set>

#include "suites/checks/attempt/concat.h"
#include "suites/checks/watched/job/kernel_name.h"
#include "suites/checks/watched/job/watched_judgement.h"

namespace graphproof::checks::watched::d24 {
namespace {

using Work = std::map<std::string, std::int64_t>;  // nodes by kind, kernels by name

/// What a graph does. Launch shapes may differ between ranks whose tensors do, and the nodes that
/// NCCL adds depend on its connections.
Work work_of(const record::WatchedGraphLine& graph) {
  Work work;
  for (const auto& [kind, count] : graph.nodes)
    if (kind != "host" && !kind.starts_with("event")) work["nodes of kind " + kind] = count;
  if (graph.kernels_left_out > 0) return work;
  for (const record::ShapedKernel& kernel : graph.kernels)
    if (kernel.name.find("ncclDevKernel") == std::string::npos)
      work["kernel " + readable_name(kernel.name)] += kernel.count;
  return work;
}

/// "kernel scale: 2 against 1"
std::string difference(const Work& left, const Work& right) {
  std::set<std::string> names;
  for (const auto& [name, count] : left) names.insert(name);
  for (const auto& [name, count] : right) names.insert(name);
  for (const std::string& name : names) {
    const auto count = [&](const Work& work) {
      const auto found = work.find(name);
      return found == work.end() ? std::int64_t{0} : found->second;
    };
    // Kernels name the difference better than their number.
    if (name == "nodes of kind kernel") continue;
    if (count(left) != count(right))
      return concat(name, ": ", count(left), " against ", count(right));
  }
  return concat("kernels: ", left.at("nodes of kind kernel"), " against ",
                right.at("nodes of kind kernel"));
}

/// The captures with calls of NCCL, in order.
std::vector<const record::WatchedCaptureLine*> communicating(const JobProcess& process) {
  std::vector<const record::WatchedCaptureLine*> captures;
  for (const auto& capture : process.of<record::WatchedCaptureLine>())
    if (capture.ended && capture.result == 0 && capture.collectives > 0)
      captures.push_back(&capture);
  return captures;
}

/// Whether it captured sends or receives. In a ring or a pipeline the work depends on the place of
/// the rank: Transformer Engine's context parallel attention skips other pieces on each.
bool passes_on(const JobProcess& process) {
  return std::ranges::any_of(process.of<record::NcclCallLine>(), [](const auto& call) {
    return call.captured.value_or(false) && (call.function == "Send" || call.function == "Recv");
  });
}

void compare_graphs(WatchedJudgement& judgement, const JobProcess& left, const JobProcess& right) {
  const auto of_left = communicating(left), of_right = communicating(right);
  const std::vector<Executable> graphs_left = executables(left), graphs_right = executables(right);
  for (std::size_t i = 0; i < std::min(of_left.size(), of_right.size()); ++i) {
    const auto &a = *of_left[i], &b = *of_right[i];
    if (a.collectives_signature != b.collectives_signature) return;  // ranks of different roles
    if (a.graph == b.graph) continue;
    const auto graph = [](const std::vector<Executable>& all, std::int64_t capture) {
      const auto found = std::ranges::find_if(
          all, [&](const Executable& one) { return one.made->capture == capture; });
      return found == all.end() ? nullptr : found->graph;
    };
    const auto *one = graph(graphs_left, a.capture), *other = graph(graphs_right, b.capture);
    if (!one || !other) continue;
    const Work want = work_of(*one), got = work_of(*other);
    if (want == got) continue;
    judgement.defect(
        right,
        {.what = concat("capture ", b.capture, captured_at(b), ", holds other work than that of ",
                        left.title()),
         .got = difference(got, want),
         .want = concat("the graph of ", left.title(), ": both hold the same ", a.collectives,
                        " calls of NCCL"),
         .why = "ranks that go through the same collectives with different work compute different "
                "things, or wait for each other",
         .next = "let nothing that depends on the rank decide what is captured"});
    return;
  }
}

struct Call {
  std::string function, datatype;
  std::int64_t elements = 0;
  auto operator<=>(const Call&) const = default;
};

/// Captured collectives by communicator, and how often each. Sends and receives differ between the
/// ranks of a communicator by design.
std::map<std::string, std::map<Call, std::int64_t>> collectives(const JobProcess& process) {
  std::map<std::string, std::map<Call, std::int64_t>> found;
  for (const auto& call : process.of<record::NcclCallLine>())
    if (call.captured.value_or(false) && call.function != "Send" && call.function != "Recv")
      found[call.communicator][{call.function, call.datatype, call.elements}] += call.count;
  return found;
}

void compare_collectives(WatchedJudgement& judgement, const JobProcess& left,
                         const JobProcess& right) {
  // A process that did not come to its end may have captured less.
  if (left.line().state != "ended" || right.line().state != "ended") return;
  const auto of_left = collectives(left), of_right = collectives(right);
  for (const auto& [communicator, calls] : of_left) {
    const auto found = of_right.find(communicator);
    if (found == of_right.end() || found->second == calls) continue;
    judgement.defect(right, {.what = concat("it captured other collectives of communicator ",
                                            communicator, " than ", left.title()),
                             .got = concat(found->second.size(), " kinds of collectives"),
                             .want = concat("the ", calls.size(), " kinds of ", left.title(),
                                            ", equally often and of equal size"),
                             .why = "a replay waits for collectives that its peer does not issue",
                             .next = "compare the nccl_call lines of both in evidence/"});
    return;
  }
}

}  // namespace

record::CheckResult rank_signatures(WatchedJudgement& judgement, const WatchedJob& job) {
  const std::vector<const JobProcess*> all = judgement.all_ranks();
  std::vector<const JobProcess*> compared;
  for (const JobProcess* process : all)
    if (!communicating(*process).empty()) compared.push_back(process);
  for (const JobProcess& process : job.processes)
    if (process.has_graphs() && std::ranges::count(compared, &process) == 0)
      judgement.excuse(process,
                       "no capture of it holds calls of NCCL, so which ranks should have "
                       "equal graphs is not known");
  if (compared.size() == 1) judgement.unexercised("only one rank captured calls of NCCL");
  for (std::size_t i = 0; i < compared.size(); ++i) {
    if (passes_on(*compared[i]))
      judgement.excuse(*compared[i],
                       "it captured sends or receives, so its work depends on its place among the "
                       "ranks, and only its collectives were compared");
    else
      judgement.confirm(*compared[i]);
    for (std::size_t j = 0; j < i && !passes_on(*compared[i]); ++j) {
      // The first rank with these calls is what later ones are compared with.
      if (communicating(*compared[j]).front()->collectives_signature !=
              communicating(*compared[i]).front()->collectives_signature ||
          passes_on(*compared[j]))
        continue;
      compare_graphs(judgement, *compared[j], *compared[i]);
      break;
    }
    if (i > 0) compare_collectives(judgement, *compared[0], *compared[i]);
  }
  return judgement.result(concat("the graphs of ", compared.size(), " ranks agree"),
                          "equal work on ranks with equal collectives");
}

}  // namespace graphproof::checks::watched::d24

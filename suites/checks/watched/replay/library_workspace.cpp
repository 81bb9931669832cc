// D66: the workspace of a library such as cuBLAS is memory that a graph uses and that no tensor of
// the program owns. It has to live as long as the graph is launched.
#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string>

#include "suites/checks/attempt/concat.h"
#include "suites/checks/watched/job/kernel_name.h"
#include "suites/checks/watched/job/watched_judgement.h"

namespace graphproof::checks::watched::d66 {
namespace {

// The sizes that PyTorch gives cuBLAS by default (aten/src/ATen/cuda/CublasHandlePool.cpp): 32 MiB
// on sm_90, and 8.125 MiB (:4096:2:16:8) elsewhere. A tensor rarely has them exactly.
constexpr std::array<std::int64_t, 2> kWorkspaces = {33554432, 8519680};

/// Whether a kernel is one of cuBLAS, cuBLASLt or cuDNN, by its name.
bool of_a_library(const std::string& kernel) {
  constexpr std::array kParts = {"cublas", "nvjet", "xmma", "cudnn", "gemv", "gemm"};
  return std::ranges::any_of(
      kParts, [&](const char* part) { return kernel.find(part) != std::string::npos; });
}

Finding freed(const Executable& one, std::string got) {
  return {.what = concat(one.title(), ", uses a library's workspace that was freed"),
          .got = std::move(got),
          .want = "a workspace that lives until the last launch",
          .why =
              "the products in the graph write to memory that belongs to something else: wrong "
              "numbers elsewhere, or an illegal address",
          .next =
              "keep the thread whose handle owns the workspace until the last launch, and do "
              "not clear cuBLAS workspaces while graphs live"};
}

/// The blocks of workspaces that kernels of a library in this graph point to, as last looked up.
std::set<std::string> workspaces(const JobProcess& process, const Executable& one) {
  std::set<std::string> found;
  for (const auto& line : process.of<record::OperandBlocksLine>()) {
    if (line.executable != one.number() || !line.largest) continue;
    found.clear();
    for (const record::OperandBlock& block : *line.largest)
      if (of_a_library(block.node) && std::ranges::count(kWorkspaces, block.bytes) > 0)
        found.insert(block.address);
  }
  return found;
}

/// Whether two of these graphs were launched on different streams with no order between them, while
/// both use the block at `address`.
const record::ConcurrentLaunchesLine* at_the_same_time(const JobProcess& process,
                                                       const std::vector<const Executable*>& graphs,
                                                       const std::string& address) {
  const auto is_one = [&](std::int64_t number) {
    return std::ranges::any_of(graphs,
                               [&](const Executable* one) { return one->number() == number; });
  };
  for (const auto& line : process.of<record::ConcurrentLaunchesLine>())
    if (is_one(line.executable) && is_one(line.other) &&
        std::ranges::count(line.blocks, address, &record::OperandBlock::address) > 0)
      return &line;
  return nullptr;
}

/// Graphs with one workspace between them are sound as long as they never run at the same time,
/// which the order of one stream ensures, or events between the launches on several.
void judge_sharing(WatchedJudgement& judgement, const JobProcess& process,
                   const std::vector<Executable>& all) {
  std::map<std::string, std::vector<const Executable*>> users;
  for (const Executable& one : all)
    if (one.launches() > 0)
      for (const std::string& block : workspaces(process, one)) users[block].push_back(&one);
  for (const auto& [block, graphs] : users) {
    std::set<std::string> streams;
    for (const Executable* one : graphs)
      for (const std::string& stream : one->replays->streams.value_or(std::vector<std::string>{}))
        streams.insert(stream);
    if (graphs.size() < 2 || streams.size() < 2) continue;
    if (const auto* line = at_the_same_time(process, graphs, block))
      judgement.defect(
          process, {.what = concat("graph ", line->executable, " is launched while graph ",
                                   line->other, " may still run, and both use one workspace"),
                    .got = concat("the workspace at ", block, ", ", line->count,
                                  " launches with no event or wait between them"),
                    .want = "a workspace for each graph that may run at the same time",
                    .why = "the products of both write their partial sums to the same memory",
                    .next = "capture each graph on a stream of its own, which gives it a workspace "
                            "of its own, or let one stream wait for the other"});
    else if (!process.line().launches_ordered.value_or(false))
      judgement.unexercised(
          concat(process.title(), ": ", graphs.front()->title(), " and ", graphs.size() - 1,
                 " more use the workspace at ", block, " and are launched on ", streams.size(),
                 " streams; whether two of them ever run at the same time is not seen"));
  }
}

}  // namespace

record::CheckResult library_workspace(WatchedJudgement& judgement, const WatchedJob& job) {
  int graphs = 0;
  for (const JobProcess& process : job.processes) {
    if (!process.has_graphs()) continue;
    bool any = false;
    const std::vector<Executable> all = executables(process);
    judge_sharing(judgement, process, all);
    for (const Executable& one : all) {
      if (one.launches() == 0) continue;
      if (const std::string unread = one.nodes_unread(); !unread.empty())
        judgement.unexercised(concat(process.title(), ": ", unread));
      if (one.graph == nullptr) continue;
      if (std::ranges::none_of(one.graph->kernels, [](const record::ShapedKernel& kernel) {
            return of_a_library(kernel.name);
          }))
        continue;
      any = true;
      ++graphs;
      for (const std::string& unread : {one.operands_unread(), unread_update(process, one)})
        if (!unread.empty()) judgement.unexercised(concat(process.title(), ": ", unread));
      for (const auto& line : process.of<record::OperandBlocksLine>()) {
        if (line.executable != one.number() || one.launches() <= line.launches) continue;
        for (const record::OperandBlock& block : line.freed)
          if (of_a_library(block.node) && std::ranges::count(kWorkspaces, block.bytes) > 0)
            judgement.defect(
                process,
                freed(one, concat("a block of ", block.bytes, " bytes used by ",
                                  readable_name(block.node), "; ", one.launches() - line.launches,
                                  " launches afterwards")));
      }
      for (const auto& line : process.of<record::OperandReleasedLine>()) {
        if (line.executable != one.number() || one.replays->launches_after_free == 0) continue;
        for (const record::ReleasedOperand& operand : line.operands)
          if (of_a_library(operand.node) && std::ranges::count(kWorkspaces, line.bytes) > 0)
            judgement.defect(process,
                             freed(one, concat(line.bytes, " bytes given back by ", line.function,
                                               ", used by ", readable_name(operand.node))));
      }
    }
    if (any)
      judgement.confirm(process);
    else
      judgement.excuse(process, "no graph that was launched has a kernel of cuBLAS or cuDNN");
  }
  return judgement.result(
      concat(graphs, " graphs with kernels of cuBLAS or cuDNN, no workspace freed in any sample"),
      "workspaces that live as long as their graphs");
}

}  // namespace graphproof::checks::watched::d66

// D66: the workspace of a library such as cuBLAS is memory that a graph uses and that no tensor of
// the program owns. It has to live as long as the graph is launched.
#include <algorithm>
#include <array>
#include <string>

#include "suites/checks/attempt/concat.h"
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

}  // namespace

record::CheckResult library_workspace(WatchedJudgement& judgement, const WatchedJob& job) {
  int graphs = 0;
  for (const JobProcess& process : job.processes) {
    if (!process.has_graphs()) continue;
    bool any = false;
    for (const Executable& one : executables(process)) {
      if (one.launches() == 0 || one.graph == nullptr) continue;
      if (std::ranges::none_of(one.graph->kernels, [](const record::ShapedKernel& kernel) {
            return of_a_library(kernel.name);
          }))
        continue;
      any = true;
      ++graphs;
      for (const auto& line : process.of<record::OperandBlocksLine>()) {
        if (line.executable != one.number() || one.launches() <= line.launches) continue;
        for (const record::OperandBlock& block : line.freed)
          if (of_a_library(block.node) && std::ranges::count(kWorkspaces, block.bytes) > 0)
            judgement.defect(
                process,
                freed(one, concat("a block of ", block.bytes, " bytes used by ", block.node, "; ",
                                  one.launches() - line.launches, " launches afterwards")));
      }
      for (const auto& line : process.of<record::OperandReleasedLine>()) {
        if (line.executable != one.number() || one.replays->launches_after_free == 0) continue;
        for (const record::ReleasedOperand& operand : line.operands)
          if (of_a_library(operand.node) && std::ranges::count(kWorkspaces, line.bytes) > 0)
            judgement.defect(process,
                             freed(one, concat(line.bytes, " bytes given back by ", line.function,
                                               ", used by ", operand.node)));
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

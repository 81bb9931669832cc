#include "suites/checks/watched/job/stack_facts.h"

#include <algorithm>

#include "suites/checks/attempt/concat.h"

namespace graphproof::checks::watched {
namespace {

/// 22809 is 2.28.9, 130100 is 13.1.0: NCCL since 2.9, cuBLAS and cuDNN since 9 number like this.
std::string dotted(std::int64_t version) {
  return concat(version / 10000, ".", version / 100 % 100, ".", version % 100);
}

bool expandable_segments(const JobProcess& process) {
  // PyTorch 2.9 and newer read the second name too.
  for (const char* name : {"PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF"})
    if (process.setting(name).find("expandable_segments:True") != std::string::npos) return true;
  return false;
}

bool has_grouped_products(const JobProcess& process) {
  for (const auto& graph : process.of<record::WatchedGraphLine>())
    for (const record::ShapedKernel& kernel : graph.kernels) {
      const bool of_cublas = kernel.name.find("nvjet") != std::string::npos ||
                             kernel.name.find("cublas") != std::string::npos;
      if (of_cublas && kernel.name.find("rouped") != std::string::npos) return true;
    }
  return false;
}

bool holds(matrix::StackUse use, const JobProcess& process) {
  switch (use) {
    case matrix::StackUse::captured_communication:
      return captured_communication(process);
    case matrix::StackUse::spans_nodes:
      return std::ranges::any_of(process.of<record::CommunicatorLine>(),
                                 [](const auto& line) { return line.nodes > 1; });
    case matrix::StackUse::expandable_segments:
      return expandable_segments(process);
    case matrix::StackUse::graph_registration:
      return registers_captured_buffers(process);
    case matrix::StackUse::grouped_products:
      return has_grouped_products(process);
  }
  return false;
}

}  // namespace

bool captured_communication(const JobProcess& process) {
  for (const auto& capture : process.of<record::WatchedCaptureLine>())
    if (capture.collectives > 0) return true;
  for (const auto& graph : process.of<record::WatchedGraphLine>())
    if (graph.nccl_kernels > 0) return true;
  return false;
}

bool registers_captured_buffers(const JobProcess& process) {
  return process.setting("NCCL_GRAPH_REGISTER") != "0";
}

std::optional<matrix::Version> version_of(const std::string& component, const JobProcess& process) {
  if (component == "torch") return matrix::parse_version(process.line().torch);
  if (component == "driver") {
    const std::int64_t version = process.line().driver_version;
    return matrix::parse_version(concat(version / 1000, ".", version % 1000 / 10));
  }
  if (const std::int64_t version = process.library_version(component))
    return matrix::parse_version(dotted(version));
  const auto package = process.line().packages.find(component);
  if (package != process.line().packages.end()) return matrix::parse_version(package->second);
  return std::nullopt;
}

std::optional<std::string> meets(const matrix::BadStack& row, const JobProcess& process) {
  const auto met =
      row.met([&](const std::string& component) { return version_of(component, process); },
              [&](matrix::StackUse use) { return std::optional(holds(use, process)); });
  // A component that is not loaded is not in use.
  if (!met || !met->unknown.empty()) return std::nullopt;
  return met->got;
}

}  // namespace graphproof::checks::watched

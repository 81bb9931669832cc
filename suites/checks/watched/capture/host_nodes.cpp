// D60: which library owns the host functions in a graph. A replay calls them again with the
// pointers of the capture, so a function that the program made for one step must not be among them.
#include <algorithm>
#include <array>
#include <set>

#include "suites/checks/attempt/concat.h"
#include "suites/checks/watched/job/kernel_name.h"
#include "suites/checks/watched/job/watched_judgement.h"

namespace graphproof::checks::watched::d60 {
namespace {

// NCCL adds a host node by right where a captured collective needs its proxy (NCCL 2.28
// src/enqueue.cc, hostStreamPlanCallback), the CUDA runtime and the other libraries for similar
// reasons. They keep what the function reads as long as the graph lives.
constexpr std::array kSound = {"libnccl", "librccl",    "libcudart", "libcuda.",
                               "libmpi",  "libnvshmem", "libucc",    "libucp"};

std::string file_name(const std::string& path) {
  return path.substr(path.rfind('/') + 1);  // npos + 1 is 0
}

bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

bool sound(const std::string& library) {
  const std::string name = file_name(library);
  return std::ranges::any_of(kSound, [&](const char* begin) { return name.starts_with(begin); });
}

/// Whether the program or its interpreter owns the function, not a library that plans for replays.
bool of_the_program(const std::string& library) {
  const std::string name = file_name(library);
  return library.empty() || name.starts_with("libpython") || name.starts_with("python") ||
         has(name, ".cpython-") || has(name, ".abi3.") || has(library, "torch_extensions") ||
         name.starts_with("libffi") || name.starts_with("_ctypes");
}

Finding calls_the_program(const Executable& one, const std::string& nodes,
                          const std::string& library, const std::string& function) {
  return {
      .what = concat(one.title(), ", calls a host function of the program"),
      .got = concat(nodes, " belongs to ",
                    library.empty() ? "no library file (made at run time, as by ctypes)" : library,
                    function.empty() ? "" : ", near " + readable_name(function)),
      .want = "host functions of communication and CUDA libraries alone",
      .why =
          "each replay calls it with the argument of the capture: what the program would do "
          "anew in each step happens with old values, or with memory that is gone",
      .next =
          "call it from the host between replays, or keep its argument alive and write the "
          "step's values into it before each replay"};
}

}  // namespace

record::CheckResult host_nodes(WatchedJudgement& judgement, const WatchedJob& job) {
  std::set<std::string> others;
  int nodes = 0;
  for (const JobProcess& process : job.processes) {
    if (!process.has_graphs()) continue;
    const std::vector<Executable> all = executables(process);
    for (const auto& node : process.of<record::HostNodeLine>()) {
      const Executable* of = launched_with(process, all, node.capture);
      if (of == nullptr) continue;
      nodes += static_cast<int>(node.count);
      if (sound(node.library)) continue;
      if (!of_the_program(node.library)) {
        others.insert(file_name(node.library));
        continue;
      }
      judgement.defect(process,
                       calls_the_program(*of, concat(node.count, " host nodes whose function"),
                                         node.library, node.function));
    }
    for (const auto& update : process.of<record::GraphUpdateLine>()) {
      const auto of = std::ranges::find(all, update.executable, &Executable::number);
      if (!update.host_library || update.result != 0 || of == all.end() ||
          of->launches() <= update.launches.value_or(0) || sound(*update.host_library))
        continue;
      if (of_the_program(*update.host_library))
        judgement.defect(process, calls_the_program(*of,
                                                    concat("a host node that ", update.function,
                                                           " gave another function, which"),
                                                    *update.host_library, ""));
      else
        others.insert(file_name(*update.host_library));
    }
    for (const Executable& one : all)
      if (const std::string unread = one.nodes_unread(); one.launches() > 0 && !unread.empty())
        judgement.unexercised(concat(process.title(), ": ", unread));
    judgement.confirm(process);
  }
  std::string summary = concat(nodes, " host nodes in graphs that were launched");
  for (const std::string& name : others) summary += concat("; some of ", name);
  return judgement.result(summary, "no host function of the program in a graph");
}

}  // namespace graphproof::checks::watched::d60

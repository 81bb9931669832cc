// D60: the memory of the host that copies in a graph read or write. A replay uses the address of
// the capture.
#include <algorithm>

#include "suites/checks/attempt/concat.h"
#include "suites/checks/watched/job/watched_judgement.h"

namespace graphproof::checks::watched::d60 {
namespace {

bool of_the_host(const record::OperandReleasedLine& line) {
  return line.memory == "pinned" || line.memory == "registered";
}

}  // namespace

record::CheckResult host_memory_operands(WatchedJudgement& judgement, const WatchedJob& job) {
  int copies = 0;
  for (const JobProcess& process : job.processes) {
    if (!process.has_graphs()) continue;
    const std::vector<Executable> all = executables(process);
    for (const auto& line : process.of<record::OperandReleasedLine>()) {
      // Of words that may be no address at all, a launch afterwards proves nothing.
      if (!of_the_host(line) || line.addresses == 0) continue;
      const auto of = std::ranges::find(all, line.executable, &Executable::number);
      if (of == all.end() || !of->replays || of->replays->launches_after_free == 0) continue;
      judgement.defect(
          process,
          {.what = concat(of->title(), ", uses memory of the host that was given back"),
           .got = concat(line.bytes, " bytes of ", line.memory, " memory, given back by ",
                         line.function, "; ", of->replays->launches_after_free,
                         " launches afterwards"),
           .want = "memory that lives until the last launch",
           .why = "the copy in the graph reads or writes what belongs to someone else by now, or "
                  "faults",
           .next = "keep a reference to the buffer as long as the graph, and fill it in place"});
    }
    for (const auto& line : process.of<record::HostMemoryLine>()) {
      const Executable* of = launched_with(process, all, line.capture);
      if (of == nullptr) continue;
      ++copies;
      if (line.memory == "unknown")
        judgement.unexercised(concat(process.title(), ": the kind of host memory at ", line.address,
                                     " is not known"));
      if (line.memory != "pageable") continue;
      if (process.line().pageable_memory_access.value_or(false)) {
        // The device follows such memory wherever the system moves it, but free() is no driver
        // call.
        judgement.unexercised(concat(process.title(),
                                     ": the device reads pageable memory, and "
                                     "whether that at ",
                                     line.address, " still lives is not seen"));
        continue;
      }
      judgement.defect(process,
                       {.what = concat(of->title(), ", copies pageable memory of the host"),
                        .got = concat(line.bytes, " bytes, as the ", line.side, " of a copy"),
                        .want = "pinned memory",
                        .why = "pageable memory can move or go between replays, and the host has "
                               "no order with a replay that reads it",
                        .next = "copy from a pinned buffer (pin_memory=True) that lives as long as "
                                "the graph, or copy outside the graph"});
    }
    for (const Executable& one : all) {
      if (one.launches() == 0) continue;
      for (const std::string& unread : {one.nodes_unread(), unread_update(process, one)})
        if (!unread.empty()) judgement.unexercised(concat(process.title(), ": ", unread));
    }
    judgement.confirm(process);
  }
  return judgement.result(concat(copies, " copies with memory of the host, none of it freed"),
                          "pinned memory that lives as long as its graph");
}

}  // namespace graphproof::checks::watched::d60

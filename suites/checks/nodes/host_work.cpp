// D60: what a graph takes from the host: functions that every replay calls again, and memory from
// which it copies.
#include "suites/checks/nodes/host_work.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>

namespace graphproof::checks::d60 {
namespace {

// They keep what their functions read as long as the graph lives; see the same list of
// suites/checks/watched/capture/host_nodes.cpp. All others may be of the program.
constexpr std::array kSound = {"libnccl", "libcudart", "libcuda.", "libmpi"};

bool sound(const std::string& file) {
  const std::string name = file.substr(file.rfind('/') + 1);  // npos + 1 is 0
  return std::ranges::any_of(kSound, [&](const char* begin) { return name.starts_with(begin); });
}

std::int64_t sum(const std::map<std::string, std::int64_t>& counts) {
  std::int64_t all = 0;
  for (const auto& [what, count] : counts) all += count;
  return all;
}

}  // namespace

/// All host functions of the graphs are those of communication and CUDA libraries.
record::CheckResult host_nodes(Judgement& judgement, const Attempt& attempt) {
  std::int64_t nodes = 0;
  for_each_captured_graph(
      judgement, attempt, [&](const RankFiles& files, const record::HostWorkLine& line) {
        nodes += sum(line.host_functions);
        const auto other = std::ranges::find_if(
            line.host_functions, [](const auto& owner) { return !sound(owner.first); });
        if (other == line.host_functions.end()) return judgement.confirm(files.rank);
        judgement.defect(
            {.rank = files.rank,
             .step = std::nullopt,
             .what = concat(title_of(line), " calls a host function of the program"),
             .got = concat(other->second, " host nodes whose function belongs to ",
                           other->first.empty() ? "no file" : other->first),
             .want = "host functions of communication and CUDA libraries alone",
             .why =
                 "each replay calls it with the argument of the capture: what the program would do "
                 "anew in each step happens with old values, or with memory that is gone"});
      });
  return judgement.result(concat(nodes, " host nodes in the graphs of ", attempt.ranks.size(),
                                 " ranks, all of libraries"),
                          "no host function of the program in a graph");
}

/// No copy of a graph reads or writes pageable memory.
record::CheckResult host_memory_operands(Judgement& judgement, const Attempt& attempt) {
  std::int64_t copies = 0;
  for_each_captured_graph(
      judgement, attempt, [&](const RankFiles& files, const record::HostWorkLine& line) {
        copies += sum(line.host_memory);
        const auto pageable = line.host_memory.find("pageable");
        if (pageable == line.host_memory.end()) return judgement.confirm(files.rank);
        judgement.defect(
            {.rank = files.rank,
             .step = std::nullopt,
             .what = concat(title_of(line), " copies pageable memory of the host"),
             .got = concat(pageable->second, " of ", sum(line.host_memory), " sides of copies"),
             .want = "pinned memory",
             .why =
                 "pageable memory can move or go between replays, and the host has no order with a "
                 "replay that reads it"});
      });
  return judgement.result(concat(copies, " sides of copies are memory of the host on ",
                                 attempt.ranks.size(), " ranks, all of them pinned"),
                          "pinned memory alone");
}

}  // namespace graphproof::checks::d60

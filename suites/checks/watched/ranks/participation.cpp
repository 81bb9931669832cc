// D26 in a watched run: all ranks of a communicator replay its collectives equally often. NCCL
// reports no replays, so the launches of each graph are counted, each as often as its capture has
// collectives: ranks may cut their steps into graphs differently. Collectives of other kinds or
// sizes are told apart, since a rank that replays the graph of another batch size waits for peers
// that are in another collective. Sends and receives are left out, of which the ranks of a
// communicator have different numbers.
#include <algorithm>
#include <map>
#include <set>

#include "suites/checks/attempt/concat.h"
#include "suites/checks/watched/job/watched_judgement.h"

namespace graphproof::checks::watched::d26 {
namespace {

/// "AllReduce of 1024 x ncclFloat32"
using Collective = std::string;
using Collectives = std::map<Collective, std::int64_t>;

struct Launches {
  const JobProcess* process = nullptr;
  std::int64_t count = 0;  // of collectives in launched graphs
  Collectives each;        // by kind and size
  std::string graph;       // the title of one of them
};

/// "AllReduce of 1024 x ncclFloat32: 9 against 10"
std::string difference(const Collectives& left, const Collectives& right) {
  Collectives all = left;
  all.insert(right.begin(), right.end());
  const auto count = [](const Collectives& of, const Collective& one) {
    const auto found = of.find(one);
    return found == of.end() ? std::int64_t{0} : found->second;
  };
  for (const auto& [one, ignored] : all)
    if (count(left, one) != count(right, one))
      return concat(one, ": ", count(left, one), " against ", count(right, one));
  return "";
}

/// The replayed collectives of each communicator.
std::map<std::string, Launches> launches_of(const JobProcess& process) {
  // Of a capture, by communicator.
  std::map<std::int64_t, std::map<std::string, Collectives>> collectives;
  for (const auto& call : process.of<record::NcclCallLine>())
    if (call.captured.value_or(false) && call.capture > 0 && call.function != "Send" &&
        call.function != "Recv")
      collectives[call.capture][call.communicator]
                 [concat(call.function, " of ", call.elements, " x ", call.datatype)] += call.count;
  std::map<std::string, Launches> found;
  for (const Executable& one : executables(process))
    for (const auto& [communicator, calls] : collectives[one.made->capture]) {
      Launches& of = found[communicator];
      of.process = &process;
      for (const auto& [collective, count] : calls) {
        of.count += one.launches() * count;
        of.each[collective] += one.launches() * count;
      }
      if (of.graph.empty()) of.graph = one.title();
    }
  return found;
}

/// Why unequal counts of `fewer` prove nothing; empty if they do.
std::string excused(const WatchedJob& job, const JobProcess& fewer) {
  const record::WatchedRun& run = job.run;
  if (run.ending == "running" || run.ending == "interrupted" || run.ending == "attached")
    return "the run was stopped, and ranks stop at different replays";
  const bool failed = run.ending == "signalled" || run.exit_code.value_or(0) != 0;
  if (failed && !fewer.of<record::FailedCallLine>().empty())
    return concat(fewer.title(), " met an error of the driver before the others");
  if (failed && fewer.line().state == "ended")
    return concat(fewer.title(), " ended before the others, and the command failed");
  return "";
}

/// Of ranks that replayed equally many collectives: whether these are the same ones.
void judge_kinds(WatchedJudgement& judgement, const WatchedJob& job,
                 const std::string& communicator, const std::vector<Launches>& of_ranks) {
  const Launches& first = of_ranks.front();
  for (const Launches& other : of_ranks) {
    const std::string differs = difference(other.each, first.each);
    if (differs.empty()) continue;
    if (const std::string excuse = excused(job, *other.process); !excuse.empty()) {
      judgement.unexercised(concat("ranks replayed other collectives, but ", excuse));
      continue;
    }
    judgement.defect(
        *other.process,
        {.what = concat("it replayed other collectives than ", first.process->title(), ": ",
                        other.graph),
         .got = concat(differs, ", communicator ", communicator),
         .want = "the same collectives, of the same size, on all ranks of a communicator",
         .why =
             "each rank waits in another collective, or takes what it receives for something else",
         .next = "let all ranks choose the graph by a size that they agree on, such as the largest "
                 "padded batch of any rank"});
  }
}

}  // namespace

record::CheckResult participation(WatchedJudgement& judgement, const WatchedJob& job) {
  std::map<std::string, std::vector<Launches>> by_communicator;
  std::set<const JobProcess*> compared;
  for (const JobProcess* process : judgement.all_ranks()) {
    if (process->line().retired_launches > 0)
      judgement.unexercised(concat(process->title(),
                                   ": launches of destroyed graphs were not "
                                   "counted for each graph"));
    for (auto& [communicator, launches] : launches_of(*process)) {
      by_communicator[communicator].push_back(launches);
      compared.insert(process);
    }
  }
  int groups = 0;
  for (const auto& [communicator, of_ranks] : by_communicator) {
    if (of_ranks.size() < 2) continue;
    ++groups;
    const auto [fewest, most] = std::ranges::minmax_element(of_ranks, {}, &Launches::count);
    if (fewest->count == most->count) {
      judge_kinds(judgement, job, communicator, of_ranks);
      continue;
    }
    if (fewest->process->line().retired_launches + most->process->line().retired_launches > 0)
      continue;
    if (const std::string excuse = excused(job, *fewest->process); !excuse.empty()) {
      judgement.unexercised(concat("ranks launched unequal numbers of graphs, but ", excuse));
      continue;
    }
    judgement.defect(
        *fewest->process,
        {.what = concat("it replayed collectives less often than ", most->process->title(), ": ",
                        fewest->graph),
         .got = concat(fewest->count, " replayed collectives against ", most->count,
                       ", communicator ", communicator),
         .want = "the same number on all ranks of a communicator",
         .why = "the last replays of the other rank wait for one that never comes",
         .next = "agree on the number of steps before the loop, and let all ranks take the same "
                 "path where one of them cannot replay"});
  }
  for (const JobProcess* process : compared) judgement.confirm(*process);
  for (const JobProcess& process : job.processes)
    if (process.has_graphs() && !compared.contains(&process))
      judgement.excuse(process, "no graph of it holds collectives of NCCL");
  if (groups == 0)
    judgement.unexercised("no two ranks have graphs with collectives of one communicator");
  return judgement.result(concat("equal replays of the collectives of ", groups, " communicators"),
                          "equal numbers of replayed collectives on all ranks of a communicator");
}

}  // namespace graphproof::checks::watched::d26

// D56 in a watched run: work that may run at the same time does not use the same memory, one of
// both writing it. Known are what copies and fills of a graph write, and that graphs with one pool
// write there. What a kernel does with its pointers is not known, so races between two kernels of
// one graph are not seen.
#include <algorithm>
#include <set>

#include "suites/checks/attempt/concat.h"
#include "suites/checks/watched/job/kernel_name.h"
#include "suites/checks/watched/job/watched_judgement.h"

namespace graphproof::checks::watched::d56 {
namespace {

struct Seen {
  std::int64_t writes = 0, possible = 0;
  std::size_t streams = 0;
};

const Executable* launched_with_race(const JobProcess& process, const std::vector<Executable>& all,
                                     const record::GraphRaceLine& race) {
  const auto found = std::ranges::find_if(all, [&](const Executable& one) {
    return one.launches() > 0 && one.made->capture == race.capture && one.made->graph == race.graph;
  });
  if (found != all.end()) return &*found;
  return race.capture > 0 ? launched_with(process, all, race.capture) : nullptr;
}

void judge_nodes(WatchedJudgement& judgement, const JobProcess& process,
                 const std::vector<Executable>& all) {
  for (const auto& race : process.of<record::GraphRaceLine>()) {
    const Executable* one = launched_with_race(process, all, race);
    if (one == nullptr) continue;
    judgement.defect(
        process,
        {.what = concat(one->title(),
                        ": two nodes use the same memory at the same time, and one "
                        "of them writes it"),
         .got = concat("a ", race.write, " of ", race.bytes, " bytes to ", race.address, ", and ",
                       readable_name(race.other), " with ", race.other_address, " (",
                       race.other_place, "), with no path between them"),
         .want = "a path from one to the other",
         .why = "replays may run them in either order, so the result is a matter of luck",
         .next = "let the stream of one wait for the other within the capture (wait_stream, or an "
                 "event), also ahead of a copy into memory that the graph still reads"});
  }
}

void judge_launches(WatchedJudgement& judgement, const JobProcess& process,
                    const std::vector<Executable>& all) {
  const auto title = [&](std::int64_t number) {
    const auto found = std::ranges::find(all, number, &Executable::number);
    return found != all.end() ? found->title() : concat("graph ", number);
  };
  for (const auto& line : process.of<record::ConcurrentLaunchesLine>()) {
    if (line.pool_addresses == 0) continue;
    judgement.defect(
        process, {.what = concat(title(line.executable), ", is launched while ", title(line.other),
                                 ", may still run, and both work in one memory pool"),
                  .got = concat(line.pool_addresses, " addresses of the pool in both, ", line.count,
                                " launches on another stream with no event or wait between them"),
                  .want = "launches in the order of one stream, or a wait between them",
                  .why = "each graph writes its intermediate results over those of the other",
                  .next = "launch both on one stream, let one stream wait for the other, or give "
                          "each graph a pool of its own (no pool= argument)"});
  }
}

/// Whether the order of the nodes of every graph that was launched is known.
bool judge_order(WatchedJudgement& judgement, const JobProcess& process,
                 const std::vector<Executable>& all, Seen& seen) {
  std::set<std::string> known, unknown;
  for (const auto& order : process.of<record::GraphOrderLine>()) {
    if (!order.known) {
      unknown.insert(order.graph);
      continue;
    }
    if (order.not_looked_at > 0) {
      judgement.unexercised(concat(process.title(), ": of ", order.writes,
                                   " copies and fills of a graph ", order.not_looked_at,
                                   " were not looked at"));
      return false;
    }
    known.insert(order.graph);
    seen.writes += order.concurrent_writes;
    seen.possible += order.possible_races;
  }
  for (const Executable& one : all) {
    if (one.launches() == 0) continue;
    if (known.contains(one.made->graph) && !unknown.contains(one.made->graph)) continue;
    judgement.unexercised(concat(process.title(), ": the order of the nodes of ", one.title(),
                                 " is not known, or was not looked at by the probe"));
    return false;
  }
  return true;
}

/// Whether it was looked up which memory the graph points to.
bool memory_known(const JobProcess& process, const Executable& one) {
  return std::ranges::any_of(process.of<record::OperandBlocksLine>(), [&](const auto& line) {
    return line.executable == one.number() && line.known && line.pool_known;
  });
}

/// Launches on several streams: why it is not known whether they share memory at the same time.
void judge_streams(WatchedJudgement& judgement, const JobProcess& process,
                   const std::vector<Executable>& all, std::size_t streams) {
  if (!process.line().launches_ordered.value_or(false))
    judgement.unexercised(concat(process.title(), ": the order of launches on ", streams,
                                 " streams was not followed to the end"));
  for (const Executable& one : all)
    if (one.launches() > 0 && !memory_known(process, one))
      judgement.unexercised(concat(process.title(), ": launches are on ", streams,
                                   " streams, and which memory ", one.title(),
                                   " uses is not known"));
}

}  // namespace

record::CheckResult races(WatchedJudgement& judgement, const WatchedJob& job) {
  Seen seen;
  for (const JobProcess& process : job.processes) {
    if (!process.has_graphs()) continue;
    const std::vector<Executable> all = executables(process);
    judge_nodes(judgement, process, all);
    judge_launches(judgement, process, all);
    const Seen before = seen;
    if (!judge_order(judgement, process, all, seen)) continue;
    std::set<std::string> streams;
    for (const Executable& one : all)
      if (one.replays && one.replays->streams)
        streams.insert(one.replays->streams->begin(), one.replays->streams->end());
    if (streams.size() > 1) judge_streams(judgement, process, all, streams.size());
    seen.streams = std::max(seen.streams, streams.size());
    if (seen.writes > before.writes || streams.size() > 1)
      judgement.confirm(process);
    else
      judgement.excuse(process,
                       "no copy or fill of a graph may run at the same time as another node, and "
                       "all launches are on one stream");
  }
  return judgement.result(
      concat(seen.writes,
             " copies and fills that other nodes may run at the same time as, launches "
             "on up to ",
             seen.streams, " streams; ", seen.possible,
             " kernels of which it is not known what they use"),
      "no memory that is written at the same time as it is used");
}

}  // namespace graphproof::checks::watched::d56

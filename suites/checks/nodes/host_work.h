// The lines about what captured graphs take from the host, which three detectors read.
#pragma once

#include <set>
#include <string>
#include <utility>

#include "suites/checks/attempt/concat.h"
#include "suites/checks/attempt/judgement.h"

namespace graphproof::checks {

/// Calls judge(files, line) for every captured graph of every rank. A graph without a line is a
/// defect.
template <class Judge>
void for_each_captured_graph(Judgement& judgement, const Attempt& attempt, const Judge& judge) {
  for (const RankFiles& files : attempt.ranks) {
    std::set<std::pair<std::string, std::string>> told;  // arm and graph
    for (const record::HostWorkLine& line : judgement.lines<record::HostWorkLine>(files)) {
      told.emplace(line.arm, line.graph);
      judge(files, line);
    }
    for (const record::CaptureLine& line : judgement.lines<record::CaptureLine>(files))
      if (line.status == "ok" && !told.contains({line.arm, line.graph}))
        judgement.absent<record::HostWorkLine>(
            files, concat("of graph ", line.graph, " of arm ", line.arm));
  }
}

/// "graph training of arm solo_graph"
inline std::string title_of(const record::HostWorkLine& line) {
  return concat("graph ", line.graph, " of arm ", line.arm);
}

}  // namespace graphproof::checks

// The lines about what captured graphs take from the host, which three detectors read.
#pragma once

#include <string>

#include "suites/checks/attempt/concat.h"
#include "suites/checks/attempt/judgement.h"

namespace graphproof::checks {

/// Calls judge(files, line) for every captured graph of every rank. Lines that are missing
/// altogether on a rank are a defect.
template <class Judge>
void for_each_captured_graph(Judgement& judgement, const Attempt& attempt, const Judge& judge) {
  for (const RankFiles& files : attempt.ranks) {
    const auto lines = judgement.lines<record::HostWorkLine>(files);
    if (lines.empty()) judgement.absent<record::HostWorkLine>(files, "");
    for (const record::HostWorkLine& line : lines) judge(files, line);
  }
}

/// "graph training of arm solo_graph"
inline std::string title_of(const record::HostWorkLine& line) {
  return concat("graph ", line.graph, " of arm ", line.arm);
}

}  // namespace graphproof::checks

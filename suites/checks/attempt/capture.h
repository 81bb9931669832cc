// Reads `capture` lines, and finds the captures that succeeded.
#pragma once

#include <string>
#include <vector>

#include "suites/checks/attempt/judgement.h"

namespace graphproof::checks {

inline bool succeeded(const record::CaptureLine& capture) {
  return capture.status == "ok" && capture.code == 0;
}

/// The captures of a rank that succeeded, in file order.
inline std::vector<const record::CaptureLine*> successful_captures(Judgement& judgement,
                                                                   const RankFiles& files) {
  std::vector<const record::CaptureLine*> result;
  for (const record::CaptureLine& line : judgement.lines<record::CaptureLine>(files))
    if (succeeded(line)) result.push_back(&line);
  return result;
}

/// "graph training of arm lockstep_graph"
inline std::string capture_name(const record::CaptureLine& capture) {
  return "graph " + capture.graph + " of arm " + capture.arm;
}

}  // namespace graphproof::checks

// Reading `capture` lines: which captures succeeded.
#pragma once

#include <string>
#include <vector>

#include "suites/checks/attempt/attempt.h"

namespace graphproof::checks {

inline bool succeeded(const Line& capture) {
  return text(capture, "status") == "ok" && integer(capture, "code") == 0;
}

inline std::vector<const Line*> successful_captures(const RankFiles& files) {
  std::vector<const Line*> result;
  for (const Line* line : files.find("capture"))
    if (succeeded(*line)) result.push_back(line);
  return result;
}

/// "graph training of arm lockstep_graph"
inline std::string capture_name(const Line& capture) {
  return "graph " + text(capture, "graph") + " of arm " + text(capture, "arm");
}

}  // namespace graphproof::checks

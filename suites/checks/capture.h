// Reading `capture` lines: which arms leave them and which captures succeeded.
#pragma once

#include <array>

#include "suites/checks/attempt.h"

namespace graphproof::checks {

/// Each captures once.
inline constexpr std::array kGraphArms = {"lockstep_graph", "graph_b", "free_graph"};

inline bool succeeded(const Line& capture) { return text(capture, "status") == "ok" && integer(capture, "code") == 0; }

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

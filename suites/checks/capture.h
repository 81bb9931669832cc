// Reading `capture` lines: which arms leave them and which captures succeeded.
#pragma once

#include <string_view>
#include <vector>

#include "suites/checks/attempt.h"

namespace graphproof::checks {

/// The arms that capture. Nothing looks at the last two while they run.
inline std::vector<const char*> graph_arms(const Attempt& attempt) {
  std::vector<const char*> arms = {"lockstep_graph", "graph_b", "free_graph"};
  if (evidence_revision(attempt) >= 2 && attempt.axes.text("model") != "collective") arms.push_back("solo_graph");
  return arms;
}

/// Whose lines stand for the whole run, because a look after each step would have waited for it.
inline bool runs_free(std::string_view arm) { return arm == "free_graph" || arm == "solo_graph"; }

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

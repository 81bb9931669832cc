// For tests of checks of memory: finds `memory` lines of an attempt.
#pragma once

#include <stdexcept>
#include <string_view>

#include "suites/checks/testing/clean_attempt.h"

namespace graphproof::checks {

/// A line of rank 1; `step` is 0 unless `when` is "step". Throws std::logic_error if there is none.
inline Line& memory_line(Attempt& attempt, std::string_view arm, std::string_view when,
                         std::int64_t step = 0) {
  for (Line& line : attempt.ranks[1].evidence->lines)
    if (line.kind == "memory" && text(line, "arm") == arm && text(line, "when") == when &&
        integer(line, "step") == step)
      return line;
  throw std::logic_error("no such memory line");
}

/// Makes all ranks share a GPU.
inline void share_gpus(Attempt& attempt) {
  for (RankFiles& files : attempt.ranks)
    for (Line& line : files.evidence->lines)
      if (line.kind == "start") line.fields["shared_gpus"] = 1;
}

}  // namespace graphproof::checks

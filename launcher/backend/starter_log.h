// What the starter of the ranks says, in its own output, about how a batch ended: which rank was
// the first to fail, and whether it could start the ranks at all. Patterns are those of our own
// (rank_starter.cpp) and of Open MPI 4.1 and 5.0.
#pragma once

#include <optional>
#include <string_view>

#include "reports/record/job/context.h"

namespace graphproof::launcher {

struct StarterReport {
  std::optional<int> rank;             // the first rank that failed
  std::optional<record::Exit> exit;    // how
  std::optional<record::Infra> infra;  // the ranks never ran, and it is not their doing
};

StarterReport read_starter_log(std::string_view text);

}  // namespace graphproof::launcher

// What the starter of the ranks prints about the end of a batch: which rank was the first to fail,
// and whether it could start the ranks at all. The patterns are those of graphproof-start
// (rank_starter.cpp) and of Open MPI 4.1 and 5.0.
#pragma once

#include <optional>
#include <string_view>

#include "reports/record/job/context.h"

namespace graphproof::launcher {

/// The starter's output in typed form. Members without a value are not in it.
struct StarterReport {
  std::optional<int> rank;             // the first rank that failed
  std::optional<record::Exit> exit;    // how it failed
  std::optional<record::Infra> infra;  // why the ranks could not be started
};

/// Reads the whole output of a starter.
StarterReport read_starter_log(std::string_view text);

}  // namespace graphproof::launcher

// index.html of a folder of runs: how the latest runs ended, flaky cases, accepted failures.
#pragma once

#include <functional>
#include <string>

#include "reports/history/history.h"

namespace graphproof::reports {

/// The page, of the latest hundred runs. `link`: the address of a run's own page, relative to this
/// one, or "" if there is none. `today`: YYYY-MM-DD.
std::string index_page(History& history, const std::string& today,
                       const std::function<std::string(const std::string& run_id)>& link);

}  // namespace graphproof::reports

// The data of report.html as JSON: one value with a row of every table for each case, in columns,
// and for each case what its own page shows. What most cases have in common is written once, so
// that a page of 10,000 cases opens at once.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "reports/print/html.h"

namespace graphproof::reports {

/// How many cases share a chunk of details, which a browser unpacks when one of them is opened.
inline constexpr std::size_t kCasesOfAChunk = 64;

/// See above. `chunks[i]` is a packed list (packing.h) with the details of cases
/// i * kCasesOfAChunk and following.
struct PageData {
  nlohmann::json run;
  std::vector<std::string> chunks;
};

PageData page_data(const RunResult& run, const PageFacts& facts);

}  // namespace graphproof::reports

// A comparison of two runs as text for a terminal, as Markdown, and as a small page of HTML.
#pragma once

#include <string>
#include <vector>

#include "reports/analysis/compare.h"
#include "reports/analysis/gates.h"

namespace graphproof::reports {

/// The formats that a comparison is printed in.
enum class CompareFormat { text, markdown, html };

/// The stack first; then the gates, cases whose verdict differs (broken ones first), cases with
/// other numbers, times and memory, and coverage. Lists of cases are cut at 20. The page is one
/// file without a script and refers to no host.
std::string compare_report(const Comparison& comparison, const std::vector<Gate>& gates,
                           CompareFormat format);

}  // namespace graphproof::reports

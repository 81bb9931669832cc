// report.html: one self-contained page of a run. It loads nothing from anywhere: the charts (Chart.js) and the table
// (DataTables, jQuery) come from the distribution's packages at build time and are inside.
#pragma once

#include <functional>
#include <string>

#include "reports/run_result.h"
#include "reports/series.h"

namespace graphproof::reports {

/// What is known of a case beside its record; nothing where it is not asked for or not there.
using SeriesOf = std::function<Series(const record::Record&)>;

/// The page. Text of ranks reaches it as JSON and is shown as text: no markup in a message can become part of the page.
/// A case page shows the curves that `series_of` finds.
std::string html(const RunResult& run, const SeriesOf& series_of);

}  // namespace graphproof::reports

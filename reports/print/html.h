// report.html: one self-contained page of a run. It loads nothing from anywhere: the charts
// (Chart.js) and the table (DataTables, jQuery) come from the distribution's packages at build time
// and are inside.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "reports/analysis/causes.h"
#include "reports/analysis/series.h"
#include "reports/outcome/run_result.h"

namespace graphproof::reports {

/// What an attempt's folder knows beside the record; nothing where there is none.
struct CaseDetail {
  Series series;
  std::vector<ErrorFact> errors;
  std::string divergence;  // reports/analysis/divergence.h
};
using DetailOf = std::function<CaseDetail(const record::Record&)>;

/// The page. Text of ranks reaches it as JSON and is shown as text: no markup in a message can
/// become part of the page. A case page shows the curves that `detail_of` finds, and the likely
/// causes of what it looks like.
std::string html(const RunResult& run, const DetailOf& detail_of);

}  // namespace graphproof::reports

// report.html: a page that shows a run. It is one file and loads nothing: the libraries for charts
// (Chart.js) and tables (DataTables, jQuery) are embedded at build time from the distribution's
// packages.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "reports/analysis/causes.h"
#include "reports/analysis/series.h"
#include "reports/outcome/run_result.h"

namespace graphproof::reports {

/// What the folder of an attempt adds to the record; empty if there is no folder.
struct CaseDetail {
  Series series;
  std::vector<ErrorFact> errors;
  std::string divergence;  // reports/analysis/divergence.h
};
using DetailOf = std::function<CaseDetail(const record::Record&)>;

/// The page as HTML. Text that ranks wrote is passed as JSON and shown as text, so markup in a
/// message cannot become part of the page. The view of a case shows the curves that `detail_of`
/// finds and the likely causes of its failure.
std::string html(const RunResult& run, const DetailOf& detail_of);

}  // namespace graphproof::reports

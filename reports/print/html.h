// report.html: a page that shows a run. It is one file and loads nothing: the library for plots
// (ECharts, reports/print/page/vendor) is inside, compressed, and its content security policy
// allows only the scripts and the style sheet of this file, by their digests.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "matrix/catalogue/catalogue.h"
#include "reports/analysis/case_detail.h"
#include "reports/analysis/cross_run.h"
#include "reports/outcome/run_result.h"
#include "reports/print/overview.h"
#include "reports/record/run/hazards.h"

namespace graphproof::reports {

/// What the page shows beyond the records.
struct PageFacts {
  const matrix::Catalogue* catalogue = nullptr;  // for what checks, faults and hazards mean
  std::optional<record::Hazards> hazards;
  Overview overview;  // of the same run
  /// What the folder of an attempt has; called once for a case, by several threads. Of a run of
  /// more than kDetailedCases cases only the failures and kDetailedOthers others are asked for.
  std::function<CaseDetail(const record::Record&)> detail_of;
  /// When the attempt ran; called once for every case, by several threads.
  std::function<std::optional<AttemptSpan>(const record::Record&)> span_of;
  CrossRunFacts cross_run;
};

/// With the curves of more cases a page would become larger than browsers open at once. Of larger
/// runs the failures have them, and some others, because reading evidence takes most of the time.
inline constexpr std::size_t kDetailedCases = 1000, kDetailedOthers = 200;

/// The page as HTML. Text that ranks wrote is passed as compressed JSON and shown as text, so
/// markup in a message cannot become part of the page. REQUIRES: catalogue, detail_of and span_of
/// are set.
std::string html(const RunResult& run, const PageFacts& facts);

}  // namespace graphproof::reports

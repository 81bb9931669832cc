#include "launcher/run/run_reports.h"

#include <system_error>
#include <vector>

#include "matrix/catalogue/catalogue.h"
#include "reports/analysis/divergence.h"
#include "reports/analysis/hazards.h"
#include "reports/outcome/faults.h"
#include "reports/outcome/summary.h"
#include "reports/print/hazard_text.h"
#include "reports/print/html.h"
#include "reports/print/junit.h"
#include "reports/print/markdown.h"
#include "reports/record/evidence/evidence.h"
#include "reports/record/text/file.h"

namespace graphproof::launcher {

namespace fs = std::filesystem;

void write_reports(const reports::RunResult& result, const fs::path& folder) {
  reports::Junit junit(result.run.profile, result.run_name, [&] {
    std::vector<record::PlanLine> plan;
    for (const reports::CaseResult& one : result.cases) plan.push_back(one.plan);
    return plan;
  }());
  for (const reports::CaseResult& one : result.cases) junit.add(one.record);
  junit.write(folder / "junit.xml");
  record::write_json(folder / "summary.json", record::to_json(reports::summary(result)));
  std::string page = reports::markdown(result);
  if (reports::has_hazards(result)) {
    const record::Hazards hazards = reports::read_hazards(result, matrix::load_catalogue(), folder);
    record::write_json(folder / "hazards.json", record::to_json(hazards));
    page += "\n" + reports::hazard_markdown(hazards);
  }
  record::write_atomically(folder / "summary.md", page);
  record::write_json(folder / "faults.json", record::to_json(reports::faults(result)));
  record::write_atomically(
      folder / "report.html", reports::html(result, [&](const record::Record& record) {
        if (record.artefacts.empty()) return reports::CaseDetail{};
        const fs::path attempt = folder / record.artefacts;
        const std::vector<record::Evidence> ranks = record::read_evidence_of_attempt(attempt);
        return reports::CaseDetail{reports::series_of(ranks), reports::errors_of(ranks),
                                   reports::divergence_text(attempt, record.ranks)};
      }));
}

reports::RunResult read_run(const fs::path& folder) {
  const fs::path file = folder / "summary.json";
  std::error_code absent;
  if (!fs::exists(file, absent))
    return reports::read_run_result(folder, reports::Ending::interrupted, 0);
  const record::Summary summary = record::summary_from(record::read_json(file), file);
  return reports::read_run_result(folder, reports::ending_from(summary.ending),
                                  summary.wall_seconds);
}

}  // namespace graphproof::launcher

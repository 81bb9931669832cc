#include "launcher/run/run_reports.h"

#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "matrix/catalogue/catalogue.h"
#include "matrix/input/input_error.h"
#include "reports/analysis/case_detail.h"
#include "reports/analysis/hazards.h"
#include "reports/history/history.h"
#include "reports/outcome/faults.h"
#include "reports/outcome/summary.h"
#include "reports/print/hazard_text.h"
#include "reports/print/html.h"
#include "reports/print/junit.h"
#include "reports/print/markdown.h"
#include "reports/record/run/journal.h"
#include "reports/record/text/file.h"

namespace graphproof::launcher {

namespace fs = std::filesystem;

namespace {

/// How long a report waits for a history that another process writes.
constexpr int kHistoryPatience_ms = 2000;

std::optional<record::Hazards> hazards_of(const reports::RunResult& result,
                                          const matrix::Catalogue& catalogue,
                                          const fs::path& folder) {
  if (!reports::has_hazards(result)) return std::nullopt;
  return reports::read_hazards(result, catalogue, folder);
}

/// What several reports of one run need, read once.
struct Facts {
  const matrix::Catalogue& catalogue;
  std::optional<record::Hazards> hazards;
  reports::CrossRunFacts cross_run;
  reports::Overview overview;

  Facts(const reports::RunResult& result, const fs::path& folder, const matrix::Catalogue& known)
      : catalogue(known),
        hazards(hazards_of(result, known, folder)),
        cross_run(earlier_runs(result, folder)),
        overview(reports::overview(result, {.catalogue = known,
                                            .hazards = hazards,
                                            .cross_run = cross_run,
                                            .errors_of = [&](const record::Record& record) {
                                              return reports::read_errors(folder, record);
                                            }})) {}
};

void write_page(const reports::RunResult& result, const fs::path& folder, Facts facts) {
  const reports::PageFacts of_page{
      .catalogue = &facts.catalogue,
      .hazards = std::move(facts.hazards),
      .overview = std::move(facts.overview),
      .detail_of =
          [&](const record::Record& record) { return reports::read_case_detail(folder, record); },
      .span_of =
          [&](const record::Record& record) { return reports::read_attempt_span(folder, record); },
      .cross_run = std::move(facts.cross_run)};
  record::write_atomically(folder / "report.html", reports::html(result, of_page));
}

}  // namespace

reports::CrossRunFacts earlier_runs(const reports::RunResult& result, const fs::path& folder) {
  const fs::path file = fs::absolute(folder / "")
                            .lexically_normal()
                            .parent_path()
                            .replace_filename(reports::kHistoryFile);
  std::error_code absent;
  if (!fs::exists(file, absent))
    return {.unknown = "There is no history next to this run; graphproof history add makes one."};
  try {
    return reports::History(file, reports::Database::Mode::read, kHistoryPatience_ms)
        .before(result);
  } catch (const matrix::InputError& error) {
    return {.unknown = "Earlier runs are not known: " + error.problem().what + " (" +
                       error.problem().got + ")."};
  }
}

reports::Overview overview_of(const reports::RunResult& result, const fs::path& folder,
                              const matrix::Catalogue& catalogue) {
  return Facts(result, folder, catalogue).overview;
}

void write_reports(const reports::RunResult& result, const fs::path& folder) {
  reports::Junit(result).write(folder / "junit.xml");
  record::AtomicFile summary(folder / "summary.json");
  reports::put_summary(result, [&](std::string_view piece) { summary.append(piece); });
  summary.commit();
  const matrix::Catalogue catalogue = matrix::load_catalogue();
  Facts facts(result, folder, catalogue);
  std::string hazard_section;
  if (facts.hazards) {
    record::write_json(folder / "hazards.json", record::to_json(*facts.hazards));
    hazard_section = reports::hazard_markdown(*facts.hazards);
  }
  record::write_atomically(folder / "summary.md",
                           reports::markdown(result, facts.overview, hazard_section));
  record::write_json(folder / "faults.json", record::to_json(reports::faults(result)));
  write_page(result, folder, std::move(facts));
}

void write_page(const reports::RunResult& result, const fs::path& folder) {
  const matrix::Catalogue catalogue = matrix::load_catalogue();
  write_page(result, folder, Facts(result, folder, catalogue));
}

reports::RunResult read_run(const fs::path& folder) {
  const fs::path file = folder / "summary.json";
  std::error_code absent;
  if (!fs::exists(file, absent))
    return reports::read_run_result(folder, reports::Ending::interrupted, 0);
  std::optional<record::Summary> summary;
  std::string damage;
  try {
    summary = record::read_summary_head(file);
  } catch (const record::ReadError& error) {
    damage = "How and after what time the run ended is not known: " + error.message().what + " (" +
             error.message().got + ").";
  }
  if (summary)
    return reports::read_run_result(folder, reports::ending_from(summary->ending),
                                    summary->wall_seconds);
  reports::RunResult result = reports::read_run_result(folder, reports::Ending::interrupted, 0);
  result.notes.push_back(damage);
  return result;
}

reports::RunResult read_verdicts(const fs::path& folder) {
  const fs::path run_file = folder / "run.json", plan_file = folder / "plan.jsonl";
  return reports::run_result(
      record::run_from(record::read_json(run_file), run_file.string()),
      record::plan_from(record::read_text(plan_file), plan_file.string()),
      record::last_records(record::read_journal(folder / "journal.jsonl").records),
      reports::Ending::interrupted, 0,
      [](const record::Record&) { return reports::CheckResults(); });
}

}  // namespace graphproof::launcher

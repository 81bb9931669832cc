#include "reports/print/html.h"

#include <stdexcept>
#include <string_view>

#include "reports/analysis/benefit.h"
#include "reports/outcome/faults.h"
#include "reports/outcome/outcome.h"
#include "reports/outcome/summary.h"
#include "reports/record/verdict/exit_code.h"

namespace graphproof::reports {

namespace page {
std::string_view embedded(std::string_view name);  // the parts of the page; made by CMake
}

namespace {

using nlohmann::json;

json case_json(const RunResult& run, const CaseResult& one, const json& summary,
               const DetailOf& detail_of) {
  json value = summary;
  const record::Record& record = one.record;
  json failing = json::array();
  for (const record::Failing& each : record.failing)
    failing.push_back({{"check", each.check},
                       {"rank", each.rank ? json(*each.rank) : json()},
                       {"what", each.message.what},
                       {"got", each.message.got},
                       {"want", each.message.want},
                       {"why", each.message.why},
                       {"next", each.message.next}});
  value["observed"] = record.observed.text();
  value["rule"] = record.rule;
  value["reason"] = record.reason;
  value["phase"] = record.phase ? json(record::name(*record.phase)) : json();
  value["attempt"] = record.attempt;
  value["failing"] = failing;
  value["figures"] = record.figures;
  value["artefacts"] = record.artefacts;
  value["why"] = one.plan.why;
  value["repro"] = run.repro(one.plan.id);
  value["exit_code"] = record::value(exit_code(record.verdict, record.rule));
  const CaseDetail detail = detail_of(record);
  if (!detail.series.empty()) value["series"] = to_json(detail.series);
  value["divergence"] = detail.divergence;
  value["symptoms"] = to_json(symptoms(record, detail.errors));
  return value;
}

json benefit_json(const RunResult& run) {
  json rows = json::array();
  for (const Benefit& one : benefits(run)) rows.push_back(to_json(one));
  return rows;
}

json data(const RunResult& run, const DetailOf& detail_of) {
  const record::Summary total = summary(run);
  json value = json::parse(record::to_json(total).dump());
  value["run"] = json::parse(record::to_json(run.run).dump());
  value["run_name"] = run.run_name;
  value["exit_meaning"] = record::meaning(static_cast<record::ExitCode>(total.exit_code));
  value["faults"] = json::parse(record::to_json(faults(run)).dump());
  value["benefit"] = benefit_json(run);
  for (std::size_t i = 0; i < run.cases.size(); ++i)
    value["cases"][i] = case_json(run, run.cases[i], value["cases"][i], detail_of);
  return value;
}

/// JSON for the inside of a <script>. It has no "<", so it cannot end the script or open a comment.
std::string in_script(const json& value) {
  std::string text = value.dump(-1, ' ', true, json::error_handler_t::replace);
  for (std::size_t at = 0; (at = text.find('<', at)) != std::string::npos; at += 6)
    text.replace(at, 1, "\\u003c");
  return text;
}

void put(std::string& page, std::string_view place, std::string_view text) {
  const std::size_t at = page.find(place);
  if (at == std::string::npos)
    throw std::logic_error("the page has no place " + std::string(place));
  page.replace(at, place.size(), text);
}

}  // namespace

std::string html(const RunResult& run, const DetailOf& detail_of) {
  std::string text(page::embedded("page/page.html"));
  put(text, "/*page.css*/", page::embedded("page/page.css"));
  put(text, "/*datatables.css*/", page::embedded("datatables.css"));
  put(text, "/*jquery.js*/", page::embedded("jquery.js"));
  put(text, "/*datatables.js*/", page::embedded("datatables.js"));
  put(text, "/*chart.js*/", page::embedded("chart.js"));
  put(text, "/*page.js*/", page::embedded("page/page.js"));
  // The data comes last, because text that ranks wrote could contain the name of a place.
  put(text, "/*run.json*/", in_script(data(run, detail_of)));
  return text;
}

}  // namespace graphproof::reports

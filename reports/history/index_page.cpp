#include "reports/history/index_page.h"

#include <algorithm>

#include "reports/print/static_page.h"
#include "reports/print/watched_page.h"
#include "reports/record/text/printable.h"

namespace graphproof::reports {
namespace {

constexpr int kRuns = 100;

/// `text` safe for the value of an attribute in double quotes.
std::string attribute(const std::string& text) {
  std::string safe;
  for (const char c : html_text(text)) safe += c == '"' ? std::string("&quot;") : std::string(1, c);
  return safe;
}

/// Bars of failed cases, one for each run, with the number as their title. A run without a failure
/// has a thin line.
std::string bars(const std::vector<HistoryRun>& runs) {
  constexpr int kWidth = 10, kHeight = 80;
  int most = 1;
  for (const HistoryRun& one : runs) most = std::max(most, one.failed);
  const std::string width = std::to_string(kWidth * static_cast<int>(runs.size()));
  std::string out = "<div><svg role=\"img\" aria-label=\"failed cases of each run\" width=\"" +
                    width + "\" height=\"" + std::to_string(kHeight) + "\">\n";
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const int height = std::max(1, kHeight * runs[i].failed / most);
    out += "<rect x=\"" + std::to_string(kWidth * static_cast<int>(i)) + "\" y=\"" +
           std::to_string(kHeight - height) + "\" width=\"" + std::to_string(kWidth - 2) +
           "\" height=\"" + std::to_string(height) + "\" fill=\"" +
           (runs[i].failed > 0 ? "#d55e00" : "#009e73") + "\"><title>" +
           html_text(runs[i].run_id + ": " + std::to_string(runs[i].failed) + " failed of " +
                     std::to_string(runs[i].cases)) +
           "</title></rect>\n";
  }
  return out + "</svg></div>\n";
}

std::string run_table(const std::vector<HistoryRun>& runs,
                      const std::function<std::string(const std::string&)>& link) {
  std::vector<std::vector<std::string>> rows;
  for (auto one = runs.rbegin(); one != runs.rend(); ++one) {
    const std::string address = link(one->run_id), name = html_text(one->run_id);
    rows.push_back(
        {html_text(one->started),
         address.empty() ? name : "<a href=\"" + attribute(address) + "\">" + name + "</a>",
         html_text(one->profile), html_text(one->device), std::to_string(one->cases),
         std::to_string(one->failed), std::to_string(one->not_shown),
         record::fixed(one->case_seconds, 1), one->fingerprint.substr(0, 8),
         one->step_ratio ? "x " + record::fixed(*one->step_ratio, 3) + " over " +
                               std::to_string(one->step_pairs) + " cases"
                         : ""});
  }
  return html_table({"started", "run", "profile", "device", "cases", "failed", "not shown",
                     "seconds", "stack", "step time against the run before"},
                    rows);
}

}  // namespace

std::string index_page(History& history, const std::string& today,
                       const std::function<std::string(const std::string& run_id)>& link) {
  const std::vector<HistoryRun> runs = history.runs(kRuns);
  std::string body = "<h2>Failed cases, the latest run on the right</h2>\n" + bars(runs) +
                     "<h2>Runs</h2>\n" + run_table(runs, link);
  std::vector<std::vector<std::string>> rows;
  for (const FlakyCase& one : history.flaky(kRuns))
    rows.push_back({std::to_string(one.failed) + " of " + std::to_string(one.trials),
                    record::fixed(100 * one.rate.low, 0) + " to " +
                        record::fixed(100 * one.rate.high, 0) + " %",
                    one.fingerprint.substr(0, 8), html_text(one.case_id), html_text(one.name)});
  if (!rows.empty())
    body += "<h2>Flaky cases</h2>\n" +
            html_table({"failed", "95 % interval", "stack", "case", "name"}, rows);
  rows.clear();
  for (const AcceptedFailure& one : history.accepted())
    rows.push_back({html_text(one.until) + (one.until < today ? " (expired)" : ""),
                    html_text(one.owner), html_text(one.verdict), html_text(one.name),
                    html_text(one.reason)});
  if (!rows.empty())
    body += "<h2>Accepted failures</h2>\n" +
            html_table({"until", "owner", "verdict", "case", "reason"}, rows);
  return static_page("Runs of graphproof", body);
}

}  // namespace graphproof::reports

#include <cmath>
#include <cstdio>

#include "reports/outcome/summary.h"
#include "reports/print/formats/formats.h"
#include "reports/record/text/printable.h"

namespace graphproof::reports {
namespace {

std::string label(const std::string& value) {
  std::string out;
  for (const char c : record::printable(value)) {
    if (c == '\\' || c == '"') out += '\\';
    out += c;
  }
  return "\"" + out + "\"";
}

std::string number(double value) {
  char text[64];
  std::snprintf(text, sizeof text, "%.10g", value);
  return text;
}

}  // namespace

std::string prometheus(const RunResult& run) {
  const record::Summary total = summary(run);
  const std::string common = "profile=" + label(total.profile) + ",device=" + label(total.device);
  std::string text;
  const auto gauge = [&text](const std::string& name, const std::string& help) {
    text += "# HELP graphproof_" + name + " " + help + "\n# TYPE graphproof_" + name + " gauge\n";
  };
  const auto sample = [&text, &common](const std::string& name, const std::string& more,
                                       double value) {
    text += "graphproof_" + name + "{" + common + (more.empty() ? "" : "," + more) + "} " +
            number(value) + "\n";
  };
  gauge("run_info", "The run that the other values are of, and its stack. Always 1.");
  sample("run_info",
         "run_id=" + label(total.run_id) + ",torch=" + label(total.stack.torch_version) +
             ",cuda=" + label(total.stack.cuda_version) +
             ",nccl=" + label(total.stack.nccl_version) + ",driver=" + label(total.stack.driver),
         1);
  gauge("exit_code", "Exit code of the run: 0 if every case was acceptable.");
  sample("exit_code", "", total.exit_code);
  gauge("wall_seconds", "Time that the run took.");
  sample("wall_seconds", "", total.wall_seconds);
  gauge("cases", "Cases by verdict.");
  for (const auto& [verdict, count] : total.counts)
    sample("cases", "verdict=" + label(verdict), count);
  gauge("cases_planned", "Cases of the plan.");
  sample("cases_planned", "", total.coverage.planned);
  gauge("required_checks", "Checks that the cases which ran required.");
  sample("required_checks", "", total.coverage.required_checks);
  gauge("required_checks_unexercised", "Those that found nothing to look at.");
  sample("required_checks_unexercised", "", total.coverage.unexercised);
  return text;
}

}  // namespace graphproof::reports

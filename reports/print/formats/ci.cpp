// For CI systems: annotations of GitHub, code quality of GitLab, CTRF.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "matrix/case/case.h"
#include "reports/outcome/order.h"
#include "reports/outcome/outcome.h"
#include "reports/outcome/signature.h"
#include "reports/outcome/standing.h"
#include "reports/outcome/summary.h"
#include "reports/print/formats/formats.h"
#include "reports/record/text/printable.h"
#include "reports/record/verdict/exit_code.h"

namespace graphproof::reports {
namespace {

using nlohmann::json;

/// The text with the characters escaped that end a workflow command or, in a property, a value.
std::string github_escaped(const std::string& text, bool property) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '%':
        out += "%25";
        break;
      case '\r':
        out += "%0D";
        break;
      case '\n':
        out += "%0A";
        break;
      case ':':
        out += property ? "%3A" : ":";
        break;
      case ',':
        out += property ? "%2C" : ",";
        break;
      default:
        out += c;
    }
  }
  return out;
}

/// The reason, the first failing check with its message, and the command that runs the case again,
/// on lines of their own.
std::string in_words(const RunResult& run, const CaseResult& one) {
  std::string text = record::printable(one.record.reason);
  if (!one.record.failing.empty()) {
    const record::Failing& first = one.record.failing.front();
    const std::pair<const char*, const std::string*> parts[] = {{"", &first.message.what},
                                                                {"got: ", &first.message.got},
                                                                {"want: ", &first.message.want},
                                                                {"why: ", &first.message.why}};
    for (const auto& [label, part] : parts)
      if (!part->empty()) text += "\n" + std::string(label) + record::printable(*part);
  }
  return text + "\n" + record::printable(run.repro(one.plan.id));
}

std::string verdict_in_words(const RunResult& run) {
  const record::Summary total = summary(run);
  std::string text = "exit " + std::to_string(total.exit_code) + ": " +
                     std::string(record::meaning(static_cast<record::ExitCode>(total.exit_code)));
  for (const auto& [verdict, count] : total.counts)
    text += ", " + std::to_string(count) + " " + verdict;
  return text;
}

/// A time such as 2026-11-21T10:15:00Z in milliseconds since 1970; 0 if it can't be read.
std::int64_t epoch_ms(const std::string& utc) {
  int year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0;
  if (std::sscanf(utc.c_str(), "%d-%d-%dT%d:%d:%dZ", &year, &month, &day, &hour, &minute,
                  &second) != 6)
    return 0;
  using namespace std::chrono;
  const sys_days date = std::chrono::year(year) / std::chrono::month(static_cast<unsigned>(month)) /
                        std::chrono::day(static_cast<unsigned>(day));
  return duration_cast<milliseconds>(
             (date + hours(hour) + minutes(minute) + seconds(second)).time_since_epoch())
      .count();
}

}  // namespace

std::string github_annotations(const RunResult& run) {
  constexpr std::size_t kShown = 10;
  const auto failures = failures_first(run);
  std::string text;
  for (std::size_t i = 0; i < std::min(failures.size(), kShown); ++i) {
    const CaseResult& one = *failures[i];
    const std::string title =
        std::string(one.record.verdict.text()) + " " + record::printable(one.plan.name);
    text += "::error title=" + github_escaped(title, true) +
            "::" + github_escaped(in_words(run, one), false) + "\n";
  }
  std::string all = verdict_in_words(run);
  if (failures.size() > kShown)
    all += "; " + std::to_string(failures.size() - kShown) + " more in summary.md";
  return text + "::notice title=graphproof " +
         github_escaped(record::printable(run.run.profile + " on " + run.run.device), true) +
         "::" + github_escaped(all, false) + "\n";
}

void gitlab_code_quality(const RunResult& run, const Put& put) {
  const auto failures = failures_first(run);
  put("[");
  for (std::size_t i = 0; i < failures.size(); ++i) {
    const CaseResult& one = *failures[i];
    const bool product = standing(one.record) == Standing::failed;
    // The same failure of the same case has the same fingerprint in every run.
    // A fault that nothing noticed has no failing check to sign.
    const std::string key =
        one.plan.id + (one.record.observed.in("fail") ? to_text(signature(one.record))
                                                      : std::string(one.record.verdict.text()));
    const json entry = {
        {"description", record::printable(one.plan.name) + ": " + in_words(run, one)},
        {"check_name", one.record.verdict.text()},
        {"fingerprint", matrix::sha256_hex(key)},
        {"severity", product ? "critical" : "info"},
        {"location",
         {{"path", record::printable(run.run.matrix.name)}, {"lines", {{"begin", 1}}}}}};
    put((i == 0 ? "\n" : ",\n") + entry.dump());
  }
  put("\n]\n");
}

void ctrf(const RunResult& run, const Put& put) {
  // What infrastructure or an end of the run kept from running is neither passed nor failed.
  const auto status_of = [](const CaseResult& one) -> const char* {
    const Standing now = standing(one.record);
    return one.record.verdict.in("skipped")         ? "skipped"
           : one.record.verdict.text() == "not_run" ? "pending"
           : now == Standing::acceptable            ? "passed"
           : now == Standing::failed                ? "failed"
                                                    : "other";
  };
  const std::int64_t start = epoch_ms(run.run.started);
  json total = {{"tests", run.cases.size()},
                {"passed", 0},
                {"failed", 0},
                {"pending", 0},
                {"skipped", 0},
                {"other", 0},
                {"start", start},
                {"stop", start + std::llround(run.wall_seconds * 1000)}};
  for (const CaseResult& one : run.cases) {
    json& count = total[status_of(one)];
    count = count.get<int>() + 1;
  }
  put("{\"reportFormat\": \"CTRF\", \"specVersion\": \"0.0.0\", \"results\": {\n\"tool\": " +
      json({{"name", "graphproof"}}).dump() + ",\n\"summary\": " + total.dump() +
      ",\n\"tests\": [");
  for (std::size_t i = 0; i < run.cases.size(); ++i) {
    const CaseResult& one = run.cases[i];
    const std::string status = status_of(one);
    json test = {{"name", record::printable(one.plan.name)},
                 {"status", status},
                 {"duration", std::llround(one.record.seconds * 1000)},
                 {"rawStatus", one.record.verdict.text()},
                 {"retries", std::max(0, one.record.attempt - 1)},
                 {"flaky", one.record.verdict.text() == "flaky"},
                 {"extra", {{"id", one.plan.id}}}};
    if (status != "passed") test["message"] = in_words(run, one);
    put((i == 0 ? "\n" : ",\n") + test.dump());
  }
  put("\n]}}\n");
}

}  // namespace graphproof::reports

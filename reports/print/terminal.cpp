#include "reports/print/terminal.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "reports/outcome/summary.h"
#include "reports/print/text_table.h"
#include "reports/record/text/printable.h"
#include "reports/record/verdict/exit_code.h"

namespace graphproof::reports {
namespace {

// Output beyond this would scroll away. The files of the run have all of it.
constexpr std::size_t kPrintedGroups = 10;
constexpr std::size_t kPrintedCases = 4;  // of one group

Colour colour_of(Kind kind) {
  switch (kind) {
    case Kind::product:
      return Colour::red;
    case Kind::ok:
      return Colour::green;
    case Kind::expected:
    case Kind::skipped:
      return Colour::dim;
    default:
      return Colour::yellow;
  }
}

std::string group_text(const RunResult& run, const OverviewGroup& one, const TerminalStyle& style) {
  std::string text = paint(one.headline, colour_of(one.kind), style) + "  " +
                     std::string(one.group.verdict.text());
  if (!one.group.signature.check.empty())
    text += "  " + record::printable(one.group.signature.check);
  text += one.group.expected ? "  (expected by the plan)\n" : "\n";
  const auto line = [&text](std::string label, const std::string& what) {
    label.resize(7, ' ');
    text += "  " + label + record::printable(what) + "\n";
  };
  for (const OverviewLine& each : one.lines)
    line(each.label, each.code + (each.code.empty() || each.text.empty() ? "" : "  ") + each.text);
  const std::vector<std::size_t>& cases = one.group.cases;
  if (cases.size() == 1) return text + "\n";
  for (std::size_t i = 0; i < std::min(cases.size(), kPrintedCases); ++i) {
    const record::PlanLine& plan = run.cases[cases[i]].plan;
    line(i == 0 ? "cases" : "", plan.id + "  " + plan.name);
  }
  if (cases.size() > kPrintedCases)
    line("", "and " + std::to_string(cases.size() - kPrintedCases) + " more");
  return text + "\n";
}

}  // namespace

std::optional<double> remaining_seconds(const Progress& progress) {
  if (progress.done >= progress.planned) return 0.0;
  if (progress.expected_done_seconds <= 0 || progress.elapsed_seconds <= 0) return std::nullopt;
  return progress.expected_left_seconds * progress.elapsed_seconds / progress.expected_done_seconds;
}

std::string clock_text(double seconds) {
  const long long whole = std::isfinite(seconds) && seconds > 0 ? std::llround(seconds) : 0;
  char text[64];
  if (whole < 3600) {
    std::snprintf(text, sizeof text, "%lld:%02lld", whole / 60, whole % 60);
  } else {
    std::snprintf(text, sizeof text, "%lld:%02lld:%02lld", whole / 3600, whole / 60 % 60,
                  whole % 60);
  }
  return text;
}

std::vector<std::string> live_block(const Progress& progress, const TerminalStyle& style) {
  constexpr std::size_t kBar = 20, kRunning = 6;
  const auto columns = static_cast<std::size_t>(std::max(style.columns, 1));
  const std::string planned = std::to_string(progress.planned);
  std::string done = std::to_string(progress.done);
  done.insert(0, planned.size() > done.size() ? planned.size() - done.size() : 0, ' ');
  const auto left = remaining_seconds(progress);
  std::size_t full = kBar;
  if (progress.planned > 0)
    full = std::min(kBar, kBar * static_cast<std::size_t>(std::max(progress.done, 0)) /
                              static_cast<std::size_t>(progress.planned));
  const std::string head = "[" + std::string(full, '#') + std::string(kBar - full, '.') + "] " +
                           done + "/" + planned + "  ";
  const std::string failed = std::to_string(progress.failed) + " failed";
  std::string line = cut(head + failed + "  " + clock_text(progress.elapsed_seconds) +
                             " elapsed  " + (left ? clock_text(*left) : "?") + " left",
                         columns);
  // Colour is added after cutting, because escape sequences take no columns.
  if (progress.failed > 0 && line.size() >= head.size() + failed.size())
    line = head + paint(failed, Colour::red, style) + line.substr(head.size() + failed.size());
  std::vector<std::string> block = {std::move(line)};
  for (std::size_t i = 0; i < std::min(progress.now.size(), kRunning); ++i)
    block.push_back(cut("  " + record::printable(progress.now[i]), columns));
  if (progress.now.size() > kRunning)
    block.push_back(
        cut("  and " + std::to_string(progress.now.size() - kRunning) + " more", columns));
  return block;
}

std::string closing_table(const RunResult& run, const Overview& words, const TerminalStyle& style) {
  std::string text;
  for (std::size_t i = 0; i < std::min(words.groups.size(), kPrintedGroups); ++i)
    text += group_text(run, words.groups[i], style);
  if (words.groups.size() > kPrintedGroups)
    text += "and " + plural(words.groups.size() - kPrintedGroups, "more way") +
            " to fail, on the page report.html\n\n";

  text += paint(words.word, colour_of(words.kind), style) + ": " +
          record::printable(words.sentence) + "\n";
  const record::Summary total = summary(run);
  std::string counts, news;
  for (const auto& [verdict, count] : total.counts)
    counts += (counts.empty() ? "" : ", ") + std::to_string(count) + " " + verdict;
  for (const std::string& one : words.news) news += (news.empty() ? "" : ", ") + one;
  text += "verdicts: " + counts + "\n";
  text += "new: " + record::printable(news) + "\n";
  text += "coverage: " + coverage_text(run) + "\n";
  const auto code = static_cast<record::ExitCode>(total.exit_code);
  text +=
      paint("exit " + std::to_string(total.exit_code) + ": " + std::string(record::meaning(code)),
            colour_of(words.kind), style) +
      " (" + record::printable(total.profile) + " on " + record::printable(total.device) + ", " +
      clock_text(total.wall_seconds) + ", run " + record::printable(total.run_id) + ")\n";
  return text;
}

std::string kill_matrix(const std::vector<record::FaultResult>& faults,
                        const TerminalStyle& style) {
  if (faults.empty()) return "";
  std::vector<std::vector<Cell>> rows = {{{"fault", Colour::dim},
                                          {"detector", Colour::dim},
                                          {"status", Colour::dim},
                                          {"clean twin", Colour::dim},
                                          {"failing checks", Colour::dim}}};
  for (const record::FaultResult& one : faults) {
    const bool good =
        one.status == record::FaultStatus::killed || one.status == record::FaultStatus::harmless;
    const bool unexercised = one.status == record::FaultStatus::unexercised;
    std::string checks;
    for (const std::string& check : one.killed_by)
      checks += (checks.empty() ? "" : ", ") + record::printable(check);
    rows.push_back({{record::printable(one.fault), {}},
                    {record::printable(one.detector), {}},
                    {std::string(name(one.status)), good          ? Colour::green
                                                    : unexercised ? Colour::yellow
                                                                  : Colour::red},
                    {std::string(one.clean_twin.text()),
                     one.clean_twin.in("pass") ? Colour::green : Colour::red},
                    {checks.empty() ? "-" : checks, {}}});
  }
  return table(rows, style, "");
}

}  // namespace graphproof::reports

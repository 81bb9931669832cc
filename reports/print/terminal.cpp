#include "reports/print/terminal.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "reports/outcome/faults.h"
#include "reports/outcome/order.h"
#include "reports/outcome/outcome.h"
#include "reports/outcome/summary.h"
#include "reports/print/text_table.h"
#include "reports/record/text/printable.h"
#include "reports/record/verdict/exit_code.h"

namespace graphproof::reports {
namespace {

// Output beyond this would scroll away. The files of the run have all of it.
constexpr std::size_t kPrintedFailures = 20;
constexpr std::size_t kPrintedChecks = 3;
constexpr std::size_t kPrintedAcceptable = 40;

Colour colour_of(const CaseResult& one) {
  if (!needs_attention(one)) return one.record.verdict.in("pass") ? Colour::green : Colour::dim;
  return exit_code(one.record.verdict, one.record.rule) == record::ExitCode::product
             ? Colour::red
             : Colour::yellow;
}

std::string failure(const RunResult& run, const CaseResult& one, const TerminalStyle& style) {
  std::string text = paint(std::string(one.record.verdict.text()), colour_of(one), style) + "  " +
                     one.plan.id + "  " + record::printable(one.plan.name) + "\n";
  text += "  " + record::printable(one.record.reason) + "\n";
  const auto& all = one.record.failing;
  for (std::size_t i = 0; i < std::min(all.size(), kPrintedChecks); ++i) {
    const record::Failing& fail = all[i];
    const std::string who = fail.check + (fail.rank ? (fail.check.empty() ? "rank " : " on rank ") +
                                                          std::to_string(*fail.rank)
                                                    : "");
    text += "    " + (who.empty() ? "" : record::printable(who) + ": ") +
            record::printable(fail.message.what) + "\n";
    const auto part = [&text](const char* label, const std::string& value) {
      if (!value.empty()) text += std::string("      ") + label + record::printable(value) + "\n";
    };
    part("got   ", fail.message.got);
    part("want  ", fail.message.want);
    part("why   ", fail.message.why);
    if (fail.message.next != run.repro(one.plan.id)) part("next  ", fail.message.next);
  }
  if (all.size() > kPrintedChecks)
    text += "    and " + std::to_string(all.size() - kPrintedChecks) + " more failing checks in " +
            record::printable(one.record.artefacts) + "\n";
  return text + "  " + record::printable(run.repro(one.plan.id)) + "\n\n";
}

std::vector<Cell> case_row(const CaseResult& one) {
  return {{std::string(one.record.verdict.text()), colour_of(one)},
          {one.plan.id, {}},
          {std::to_string(one.plan.ranks), {}},
          {record::fixed(one.record.seconds, 2), {}},
          {record::printable(one.plan.name), {}}};
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

std::string closing_table(const RunResult& run, const TerminalStyle& style) {
  const record::Summary total = summary(run);
  const auto failures = failures_first(run);
  const auto others = acceptable(run);
  std::string text;
  for (std::size_t i = 0; i < std::min(failures.size(), kPrintedFailures); ++i)
    text += failure(run, *failures[i], style);

  std::vector<std::vector<Cell>> rows = {{{"verdict", Colour::dim},
                                          {"case", Colour::dim},
                                          {"ranks", Colour::dim},
                                          {"seconds", Colour::dim},
                                          {"name", Colour::dim}}};
  for (const CaseResult* one : failures) rows.push_back(case_row(*one));
  for (std::size_t i = 0; i < std::min(others.size(), kPrintedAcceptable); ++i)
    rows.push_back(case_row(*others[i]));
  text += table(rows, style, "");
  if (others.size() > kPrintedAcceptable)
    text += "... and " + std::to_string(others.size() - kPrintedAcceptable) +
            " more acceptable cases, in summary.json\n";

  text += "\n";
  std::vector<std::vector<Cell>> counts;
  for (const auto& [verdict, count] : total.counts)
    counts.push_back({{verdict, {}}, {std::to_string(count), {}}});
  text += table(counts, style, "");
  const record::Coverage& coverage = total.coverage;
  text += "coverage: " + std::to_string(coverage.planned) +
          " planned = " + std::to_string(coverage.ran) + " ran + " +
          std::to_string(coverage.rejected) + " rejected + " + std::to_string(coverage.skipped) +
          " skipped + " + std::to_string(coverage.not_run) + " not run; " +
          std::to_string(coverage.unexercised) + " of " + std::to_string(coverage.required_checks) +
          " required checks unexercised\n";
  if (const auto lost = std::count_if(run.cases.begin(), run.cases.end(), lost_evidence); lost > 0)
    text += "the checks of " + std::to_string(lost) +
            " cases are gone (their folders have no checks.json), so nothing shows any more that "
            "their verdicts are right; where the evidence is left, report --judge-again helps\n";
  const auto code = static_cast<record::ExitCode>(total.exit_code);
  const Colour colour = code == record::ExitCode::ok        ? Colour::green
                        : code == record::ExitCode::product ? Colour::red
                                                            : Colour::yellow;
  text +=
      paint("exit " + std::to_string(total.exit_code) + ": " + std::string(record::meaning(code)),
            colour, style) +
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

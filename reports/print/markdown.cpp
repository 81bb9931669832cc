#include "reports/print/markdown.h"

#include <algorithm>
#include <cstdio>

#include "reports/analysis/benefit.h"
#include "reports/outcome/faults.h"
#include "reports/outcome/order.h"
#include "reports/outcome/summary.h"
#include "reports/print/markdown_parts.h"
#include "reports/record/text/printable.h"
#include "reports/record/verdict/exit_code.h"

namespace graphproof::reports {
namespace {

// The page is meant to be read as a whole. The other files have the rest.
constexpr std::size_t kShownFailures = 50;
constexpr std::size_t kShownChecksOfOneCase = 5;
constexpr std::size_t kLongestChecks = 8'000;  // bytes
constexpr std::size_t kSlowestCases = 10;
constexpr std::size_t kShownBenefits = 10;
constexpr std::size_t kShownAxisValues = 20;

std::string failure(const RunResult& run, const CaseResult& one) {
  std::string text = "### " + markdown_code(std::string(one.record.verdict.text())) + " " +
                     markdown_code(one.plan.name) + "\n\n";
  text += markdown_text(one.record.reason) + " (case " + markdown_code(one.plan.id) + ", rule " +
          std::to_string(one.record.rule);
  if (one.record.observed != one.record.verdict)
    text += ", observed " + markdown_code(std::string(one.record.observed.text()));
  text += ")\n\n";
  const auto& all = one.record.failing;
  std::string checks;
  for (std::size_t i = 0; i < std::min(all.size(), kShownChecksOfOneCase); ++i)
    checks += markdown_failing(all[i]);
  if (checks.size() > kLongestChecks)
    text += "- the messages are too long for this page; they are in " +
            markdown_code(one.record.artefacts) + "\n";
  else
    text += checks;
  if (all.size() > kShownChecksOfOneCase)
    text += "- and " + std::to_string(all.size() - kShownChecksOfOneCase) + " more in " +
            markdown_code(one.record.artefacts) + "\n";
  if (!all.empty()) text += "\n";
  return text + "```\n" + record::printable(run.repro(one.plan.id)) + "\n```\n\n";
}

std::string or_dash(const std::optional<double>& value, int digits) {
  return value ? record::fixed(*value, digits) : "-";
}

std::string benefit_table(std::vector<Benefit> rows) {
  if (rows.empty()) return "";
  const auto speed_up = [](const Benefit& one) { return one.eager_ms / one.graph_ms; };
  std::stable_sort(rows.begin(), rows.end(), [&](const Benefit& left, const Benefit& right) {
    return speed_up(left) > speed_up(right);
  });
  const std::size_t all = rows.size();
  if (rows.size() > kShownBenefits) rows.resize(kShownBenefits);
  std::string text =
      "## Benefit\n\nStep times of the slowest rank; `busy` is the GPU's share of an eager "
      "step. The " +
      std::to_string(rows.size()) + " largest of " + std::to_string(all) + " cases.\n\n" +
      markdown_header({"case", "eager, ms", "graph, ms", "eager / graph", "launch, ms", "busy",
                       "capture, ms", "graphs", "extra MiB", "steps to break even", "gain"});
  for (const Benefit& one : rows)
    text += markdown_row({markdown_code(one.name), record::fixed(one.eager_ms, 2),
                          record::fixed(one.graph_ms, 2), record::fixed(speed_up(one), 1),
                          or_dash(one.launch_ms, 2),
                          one.busy_share ? record::fixed(100 * *one.busy_share, 0) + " %" : "-",
                          record::fixed(one.capture_ms, 1), std::to_string(one.graphs),
                          record::fixed(static_cast<double>(one.extra_bytes) / (1 << 20), 1),
                          or_dash(one.break_even_steps, 1), one.meaning});
  return text + "\n";
}

std::string axis_benefit_table(std::vector<AxisBenefit> rows) {
  if (rows.empty()) return "";
  const std::size_t all = rows.size();
  if (all > kShownAxisValues) rows.resize(kShownAxisValues);
  std::string text =
      "## Benefit by axis\n\nThe time of an eager step by that of a graph step over the cases with "
      "each value, which may differ in other axes as well. The axes with the largest differences "
      "come first; " +
      std::to_string(rows.size()) + " of " + std::to_string(all) + " values.\n\n" +
      markdown_header(
          {"axis", "value", "cases", "median", "least", "largest", "extra MiB (median)"});
  for (const AxisBenefit& one : rows)
    text += markdown_row(
        {markdown_code(one.axis),
         markdown_code(one.value.is_string() ? one.value.get<std::string>() : one.value.dump()),
         std::to_string(one.cases), record::fixed(one.speed_up, 2), record::fixed(one.least, 2),
         record::fixed(one.largest, 2),
         record::fixed(static_cast<double>(one.extra_bytes) / (1 << 20), 1)});
  return text + "\n";
}

/// The start of the page: the verdict in words, counts, coverage, what is new.
std::string head(const RunResult& run, const Overview& words) {
  const record::Summary total = summary(run);
  const auto exit_meaning = record::meaning(static_cast<record::ExitCode>(total.exit_code));
  std::string text = "# graphproof " + markdown_text(total.profile) + " on " +
                     markdown_text(total.device) + "\n\n";
  text += "**" + words.word + ".** " + markdown_text(words.sentence) + " Run " +
          markdown_code(total.run_id) + ", " + record::fixed(total.wall_seconds, 1) +
          " s. Exit code " + std::to_string(total.exit_code) + ": " + std::string(exit_meaning) +
          ".\n\n";
  text += markdown_header({"verdict", "cases"});
  for (const auto& [verdict, count] : total.counts)
    text += markdown_row({markdown_code(verdict), std::to_string(count)});
  std::string news;
  for (const std::string& one : words.news) news += (news.empty() ? "" : ", ") + one;
  return text + "\nCoverage: " + coverage_text(run) + ".\n\nNew: " + markdown_text(news) + "\n\n";
}

std::string group_text(const OverviewGroup& one) {
  std::string text = "### " + markdown_text(one.headline);
  if (!one.group.signature.check.empty()) text += " " + markdown_code(one.group.signature.check);
  text += one.group.expected ? " (expected by the plan)\n\n" : "\n\n";
  for (const OverviewLine& line : one.lines) {
    text += "- " + line.label + ":";
    if (!line.code.empty()) text += " " + markdown_code(line.code);
    if (!line.text.empty()) text += " " + markdown_text(line.text);
    text += "\n";
  }
  return text + "\n";
}

/// The groups of failures that fit into `budget` bytes, and how many more there are.
std::string group_section(const Overview& words, std::size_t budget) {
  constexpr std::size_t kRest = 80;  // for the line that counts those left out
  if (words.groups.empty()) return "";
  std::string text = "## Failures by cause\n\n";
  std::size_t shown = 0;
  for (; shown < words.groups.size(); ++shown) {
    const std::string one = group_text(words.groups[shown]);
    if (text.size() + one.size() + kRest > budget) break;
    text += one;
  }
  if (words.groups.size() > shown)
    text +=
        "And " + plural(words.groups.size() - shown, "more way") + " to fail, on report.html.\n\n";
  return text;
}

/// The failures that fit into `budget` bytes, and how many more there are.
std::string failure_section(const RunResult& run, std::size_t budget) {
  constexpr std::size_t kRest = 80;  // for the line that counts those left out
  const auto failures = failures_first(run);
  if (failures.empty()) return "";
  std::string text = "## Failures\n\n";
  std::size_t shown = 0;
  for (; shown < std::min(failures.size(), kShownFailures); ++shown) {
    const std::string one = failure(run, *failures[shown]);
    if (text.size() + one.size() + kRest > budget) break;
    text += one;
  }
  if (failures.size() > shown)
    text += "And " + std::to_string(failures.size() - shown) + " more; summary.json lists all.\n\n";
  return text;
}

std::string kill_section(const RunResult& run) {
  const auto kills = faults(run);
  if (kills.empty()) return "";
  std::string text = "## Kill matrix\n\n" + markdown_header({"fault", "detector", "status",
                                                             "failing checks", "clean twin"});
  for (const record::FaultResult& one : kills) {
    std::string checks;
    for (const std::string& check : one.killed_by)
      checks += (checks.empty() ? "" : ", ") + markdown_code(check);
    text += markdown_row({markdown_text(one.fault), markdown_text(one.detector),
                          std::string(name(one.status)), checks,
                          markdown_code(std::string(one.clean_twin.text()))});
  }
  return text + "\n";
}

std::string slowest_section(const RunResult& run) {
  std::vector<const CaseResult*> slowest;
  for (const CaseResult& one : run.cases)
    if (one.record.seconds > 0) slowest.push_back(&one);
  std::stable_sort(slowest.begin(), slowest.end(),
                   [](const CaseResult* left, const CaseResult* right) {
                     return left->record.seconds > right->record.seconds;
                   });
  if (slowest.empty()) return "";
  std::string text = "## Slowest cases\n\n" + markdown_header({"seconds", "verdict", "case"});
  for (std::size_t i = 0; i < std::min(slowest.size(), kSlowestCases); ++i)
    text += markdown_row({record::fixed(slowest[i]->record.seconds, 2),
                          markdown_code(std::string(slowest[i]->record.verdict.text())),
                          markdown_code(slowest[i]->plan.name)});
  return text + "\n";
}

std::string versions_section(const RunResult& run) {
  const record::Stack& stack = run.run.stack;
  std::string text = "## Stack\n\n" + markdown_header({"part", "version"});
  const std::pair<const char*, const std::string*> parts[] = {
      {"torch", &stack.torch_version}, {"CUDA", &stack.cuda_version},
      {"NCCL", &stack.nccl_version},   {"driver", &stack.driver},
      {"cuDNN", &stack.cudnn_version}, {"MPI", &stack.mpi}};
  for (const auto& [part, version] : parts) text += markdown_row({part, markdown_text(*version)});
  std::string gpus;
  for (const std::string& gpu : stack.gpus) gpus += (gpus.empty() ? "" : ", ") + gpu;
  text += markdown_row({"GPUs", gpus.empty() ? "none" : markdown_text(gpus)});
  const record::GpuSharing& sharing = run.run.options.sharing;
  if (sharing.cases_per_gpu > 1)
    text += markdown_row({"cases per GPU", "up to " + std::to_string(sharing.cases_per_gpu) +
                                               " at the same time: their times say nothing"});
  if (sharing.ranks_per_gpu > 1)
    text += markdown_row(
        {"ranks per GPU", "up to " + std::to_string(sharing.ranks_per_gpu) +
                              ", in cases of more ranks than GPUs: NCCL talks between them "
                              "as between hosts, and their times say nothing"});
  return text + "\n";
}

}  // namespace

std::string markdown(const RunResult& run, const Overview& words, const std::string& hazards) {
  std::string text = head(run, words);
  // Half of the page is kept for what follows the failures.
  const std::string groups = group_section(words, kMarkdownLimit / 4);
  text += groups + failure_section(run, kMarkdownLimit / 2 - groups.size());
  struct Section {
    const char* name;
    std::string text;
  };
  const Section sections[] = {{"the hazards", hazards.empty() ? "" : hazards + "\n"},
                              {"the kill matrix", kill_section(run)},
                              {"the stack", versions_section(run)},
                              {"the slowest cases", slowest_section(run)},
                              {"the benefit of graphs", benefit_table(benefits(run))},
                              {"the benefit by axis", axis_benefit_table(benefits_by_axis(run))}};
  std::string left_out;
  constexpr std::size_t kRest = 200;  // for the line that names what is left out
  for (const Section& one : sections) {
    if (text.size() + one.text.size() + kRest > kMarkdownLimit)
      left_out += (left_out.empty() ? "" : ", ") + std::string(one.name);
    else
      text += one.text;
  }
  if (!left_out.empty())
    text += "Left out, because the page would be too long: " + left_out + ".\n";
  return text;
}

}  // namespace graphproof::reports

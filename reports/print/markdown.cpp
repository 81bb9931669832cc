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
constexpr std::size_t kSlowestCases = 10;

std::string failure(const RunResult& run, const CaseResult& one) {
  std::string text = "### " + markdown_code(std::string(one.record.verdict.text())) + " " +
                     markdown_code(one.plan.name) + "\n\n";
  text += markdown_text(one.record.reason) + " (case " + markdown_code(one.plan.id) + ", rule " +
          std::to_string(one.record.rule);
  if (one.record.observed != one.record.verdict)
    text += ", observed " + markdown_code(std::string(one.record.observed.text()));
  text += ")\n\n";
  const auto& all = one.record.failing;
  for (std::size_t i = 0; i < std::min(all.size(), kShownChecksOfOneCase); ++i)
    text += markdown_failing(all[i]);
  if (all.size() > kShownChecksOfOneCase)
    text += "- and " + std::to_string(all.size() - kShownChecksOfOneCase) + " more in " +
            markdown_code(one.record.artefacts) + "\n";
  if (!all.empty()) text += "\n";
  return text + "```\n" + record::printable(run.repro(one.plan.id)) + "\n```\n\n";
}

std::string or_dash(const std::optional<double>& value, int digits) {
  return value ? record::fixed(*value, digits) : "-";
}

std::string benefit_table(const std::vector<Benefit>& rows) {
  if (rows.empty()) return "";
  std::string text =
      "## Benefit\n\nStep times of the slowest rank; `busy` is the GPU's share of an eager "
      "step.\n\n" +
      markdown_header({"case", "eager, ms", "graph, ms", "eager / graph", "launch, ms", "busy",
                       "capture, ms", "graphs", "extra MiB", "steps to break even", "gain"});
  for (const Benefit& one : rows)
    text += markdown_row({markdown_code(one.name), record::fixed(one.eager_ms, 2),
                          record::fixed(one.graph_ms, 2),
                          record::fixed(one.eager_ms / one.graph_ms, 1), or_dash(one.launch_ms, 2),
                          one.busy_share ? record::fixed(100 * *one.busy_share, 0) + " %" : "-",
                          record::fixed(one.capture_ms, 1), std::to_string(one.graphs),
                          record::fixed(static_cast<double>(one.extra_bytes) / (1 << 20), 1),
                          or_dash(one.break_even_steps, 1), one.meaning});
  return text + "\n";
}

}  // namespace

std::string markdown(const RunResult& run) {
  const record::Summary total = summary(run);
  const auto exit_meaning = record::meaning(static_cast<record::ExitCode>(total.exit_code));
  std::string text = "# graphproof " + markdown_text(total.profile) + " on " +
                     markdown_text(total.device) + "\n\n";
  text += "Run " + markdown_code(total.run_id) + ", " + record::fixed(total.wall_seconds, 1) +
          " s. Exit code " + std::to_string(total.exit_code) + ": " + std::string(exit_meaning) +
          ".\n\n";
  if (!total.finished)
    text += "**The run did not finish**: " + std::to_string(total.coverage.not_run) + " of " +
            std::to_string(total.coverage.planned) + " cases have no verdict of their own.\n\n";

  text += markdown_header({"verdict", "cases"});
  for (const auto& [verdict, count] : total.counts)
    text += markdown_row({markdown_code(verdict), std::to_string(count)});
  const record::Coverage& coverage = total.coverage;
  text += "\nCoverage: " + std::to_string(coverage.planned) +
          " planned = " + std::to_string(coverage.ran) + " ran + " +
          std::to_string(coverage.rejected) + " rejected + " + std::to_string(coverage.skipped) +
          " skipped + " + std::to_string(coverage.not_run) + " not run; " +
          std::to_string(coverage.unexercised) + " of " + std::to_string(coverage.required_checks) +
          " required checks unexercised.\n\n";

  const auto failures = failures_first(run);
  if (!failures.empty()) text += "## Failures\n\n";
  for (std::size_t i = 0; i < std::min(failures.size(), kShownFailures); ++i)
    text += failure(run, *failures[i]);
  if (failures.size() > kShownFailures)
    text += "And " + std::to_string(failures.size() - kShownFailures) +
            " more; summary.json lists all.\n\n";

  if (const auto kills = faults(run); !kills.empty()) {
    text += "## Kill matrix\n\n" +
            markdown_header({"fault", "detector", "status", "failing checks", "clean twin"});
    for (const record::FaultResult& one : kills) {
      std::string checks;
      for (const std::string& check : one.killed_by)
        checks += (checks.empty() ? "" : ", ") + markdown_code(check);
      text += markdown_row({markdown_text(one.fault), markdown_text(one.detector),
                            std::string(name(one.status)), checks,
                            markdown_code(std::string(one.clean_twin.text()))});
    }
    text += "\n";
  }

  text += benefit_table(benefits(run));

  std::vector<const CaseResult*> slowest;
  for (const CaseResult& one : run.cases)
    if (one.record.seconds > 0) slowest.push_back(&one);
  std::stable_sort(slowest.begin(), slowest.end(),
                   [](const CaseResult* left, const CaseResult* right) {
                     return left->record.seconds > right->record.seconds;
                   });
  if (!slowest.empty())
    text += "## Slowest cases\n\n" + markdown_header({"seconds", "verdict", "case"});
  for (std::size_t i = 0; i < std::min(slowest.size(), kSlowestCases); ++i)
    text += markdown_row({record::fixed(slowest[i]->record.seconds, 2),
                          markdown_code(std::string(slowest[i]->record.verdict.text())),
                          markdown_code(slowest[i]->plan.name)});
  if (!slowest.empty()) text += "\n";

  const record::Stack& stack = run.run.stack;
  text += "## Stack\n\n" + markdown_header({"part", "version"});
  const std::pair<const char*, const std::string*> parts[] = {
      {"torch", &stack.torch_version}, {"CUDA", &stack.cuda_version},
      {"NCCL", &stack.nccl_version},   {"driver", &stack.driver},
      {"cuDNN", &stack.cudnn_version}, {"MPI", &stack.mpi}};
  for (const auto& [part, version] : parts) text += markdown_row({part, markdown_text(*version)});
  std::string gpus;
  for (const std::string& gpu : stack.gpus) gpus += (gpus.empty() ? "" : ", ") + gpu;
  text += markdown_row({"GPUs", gpus.empty() ? "none" : markdown_text(gpus)});
  if (run.run.options.ranks_per_gpu > 1)
    text += markdown_row(
        {"ranks per GPU", "up to " + std::to_string(run.run.options.ranks_per_gpu) +
                              ", in cases of more ranks than GPUs: NCCL talks between them "
                              "as between hosts, and their times say nothing"});
  return text;
}

}  // namespace graphproof::reports

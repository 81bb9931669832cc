#include "launcher/cli/show/show_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "launcher/cli/device_option.h"
#include "launcher/run/run_reports.h"
#include "matrix/plan/plan_line.h"
#include "reports/analysis/hazards.h"
#include "reports/outcome/faults.h"
#include "reports/outcome/outcome.h"
#include "reports/outcome/summary.h"
#include "reports/print/hazard_text.h"
#include "reports/record/text/printable.h"

namespace graphproof::cli {

reports::TerminalStyle style_of(const Surroundings& surroundings) {
  return {.colour = surroundings.terminal && std::getenv("NO_COLOR") == nullptr,
          .columns = surroundings.columns};
}

namespace {

/// The expected cost of the run, from the expected times in the plan.
std::string cost_line(const launcher::RunSetup& setup) {
  double slot_seconds = 0, longest_seconds = 0;
  for (const record::PlanLine& line : setup.plan) {
    if (line.skip) continue;
    slot_seconds += line.ranks * line.expected_seconds;
    longest_seconds = std::max(longest_seconds, line.expected_seconds);
  }
  const int slots = std::max(1, setup.run.slots) * setup.run.options.sharing.cases_per_gpu;
  const double wall_seconds = std::max(longest_seconds, slot_seconds / slots);
  std::string bound;
  if (setup.run.options.max_gpu_ms > 0)
    bound =
        fmt::format("; at most {:.1f}", static_cast<double>(setup.run.options.max_gpu_ms) / 60000);
  return fmt::format("expected cost {:.1f} {}-minutes{}, {} or more on {} slots\n",
                     slot_seconds / 60, setup.run.device == "cuda" ? "GPU" : "rank", bound,
                     reports::clock_text(wall_seconds), slots);
}

bool tests_other_subjects(const launcher::RunSetup& setup) {
  return std::any_of(setup.plan.begin(), setup.plan.end(), [](const record::PlanLine& line) {
    return matrix::subject_of(line) != matrix::kReference;
  });
}

}  // namespace

std::string stack_line(const record::Stack& stack) {
  return record::printable(fmt::format("stack torch {}  cuda {}  nccl {}  driver {}  {}",
                                       stack.torch_version, stack.cuda_version, stack.nccl_version,
                                       stack.driver, stack.mpi));
}

std::string subjects_line(const record::Stack& stack) {
  if (stack.subjects.empty()) return "";
  std::string here, missing;
  for (const auto& [name, state] : stack.subjects)
    if (state.available)
      here += fmt::format("  {} {}", name, state.version);
    else
      missing += fmt::format("{}{} ({})", missing.empty() ? "" : ", ", name, state.why);
  return record::printable(fmt::format("subjects of {}{}{}", stack.python, here,
                                       missing.empty() ? "" : "  not here: " + missing)) +
         "\n";
}

ProgressPrinter::ProgressPrinter(Surroundings& surroundings, bool json)
    : out_(json ? surroundings.err : surroundings.out),
      live_(surroundings.terminal && !json),
      style_(style_of(surroundings)) {}

void ProgressPrinter::begin(const launcher::RunSetup& setup) {
  const record::Stack& stack = setup.run.stack;
  const record::GpuSharing& sharing = setup.run.options.sharing;
  std::string shared;
  if (sharing.ranks_per_gpu > 1)
    shared += fmt::format(", up to {} ranks on each", sharing.ranks_per_gpu);
  if (sharing.cases_per_gpu > 1)
    shared += fmt::format(", up to {} cases on each", sharing.cases_per_gpu);
  const std::string place =
      setup.run.device == "cuda"
          ? fmt::format("{} x {}{}", stack.gpus.size(),
                        stack.gpus.empty() ? "GPU" : stack.gpus.front(), shared)
          : fmt::format("simulated device, up to {} ranks", setup.run.slots);
  out_ << fmt::format("run {}  profile {}  {} cases  {}\n", setup.run.run_id, setup.run.profile,
                      setup.plan.size(), record::printable(place))
       << stack_line(stack) << "\n"
       << turns_line(setup.gpus, sharing)
       << (tests_other_subjects(setup) ? subjects_line(stack) : "") << cost_line(setup) << "folder "
       << setup.folder.string() << "\n"
       << std::flush;
}

launcher::RunListener ProgressPrinter::listener() {
  launcher::RunListener listener;
  listener.finished = [this](const record::Record& record, const reports::Progress& progress) {
    finished(record, progress);
  };
  if (live_) listener.progress = [this](const reports::Progress& progress) { live(progress); };
  listener.notice = [this](const std::string& text) {
    end();
    out_ << record::printable(text) << std::endl;
  };
  return listener;
}

void ProgressPrinter::live(const reports::Progress& progress) {
  end();
  const std::vector<std::string> block = reports::live_block(progress, style_);
  for (std::size_t i = 0; i < block.size(); ++i) out_ << (i == 0 ? "" : "\n") << block[i];
  out_ << std::flush;
  shown_lines_ = block.size();
}

void ProgressPrinter::end() {
  if (shown_lines_ == 0) return;
  // To the start of the block's first line, then everything below is cleared.
  out_ << "\r";
  if (shown_lines_ > 1) out_ << "\x1b[" << shown_lines_ - 1 << "A";
  out_ << "\x1b[J";
  shown_lines_ = 0;
}

void ProgressPrinter::finished(const record::Record& record, const reports::Progress& progress) {
  const bool failed = reports::exit_code(record.verdict, record.rule) != record::ExitCode::ok;
  if (live_ && !failed) return live(progress);
  end();
  const std::string left = [&] {
    const auto seconds = reports::remaining_seconds(progress);
    return seconds ? reports::clock_text(*seconds) + " left" : std::string();
  }();
  out_ << fmt::format("[{:>3}/{}] {:<22} {:>6.2f} s  {}{}{}\n", progress.done, progress.planned,
                      record.verdict.text(), record.seconds, record::printable(record.name),
                      failed ? "  " + record::printable(record.reason) : "",
                      left.empty() ? "" : "  (" + left + ")")
       << std::flush;
}

void show_result(const reports::RunResult& result, const std::filesystem::path& folder,
                 Surroundings& surroundings, bool json) {
  if (json) {
    reports::put_summary(result, [&](std::string_view piece) { surroundings.out << piece; });
    return;
  }
  const reports::TerminalStyle style = style_of(surroundings);
  if (const auto faults = reports::faults(result); !faults.empty())
    surroundings.out << reports::kill_matrix(faults, style) << "\n";
  if (reports::has_hazards(result))
    surroundings.out << reports::hazard_text(
                            reports::read_hazards(result, surroundings.catalogue, folder), style)
                     << "\n";
  // The closing table comes last, because the end of the output stays on the screen.
  const reports::Overview words = launcher::overview_of(result, folder, surroundings.catalogue);
  surroundings.out << reports::closing_table(result, words, style) << "evidence and reports in "
                   << folder.string() << std::endl;
}

record::ExitCode run_and_show(const launcher::RunSetup& setup, Surroundings& surroundings,
                              bool json, RunLoop loop) {
  ProgressPrinter printer(surroundings, json);
  printer.begin(setup);
  const reports::RunResult result = loop(setup, printer.listener());
  printer.end();
  show_result(result, setup.folder, surroundings, json);
  return reports::exit_code(result);
}

}  // namespace graphproof::cli

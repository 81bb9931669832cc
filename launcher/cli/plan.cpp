// plan: what a run would do on this machine, before anything runs.
#include <fmt/format.h>

#include <memory>

#include "launcher/cli/planning.h"
#include "launcher/cli/verb.h"
#include "reports/printable.h"
#include "reports/terminal.h"

namespace graphproof::cli {
namespace {

struct Options {
  PlanOptions plan;
  bool json = false;
};

std::string expectation(const record::PlanLine& line) {
  if (line.skip) return std::string(line.skip->verdict.text());
  if (line.expect.kind == "rejected") return "rejected by " + line.expect.rule;
  if (line.expect.kind == "fault") return "killed by " + line.expect.detector;
  return line.expect.kind;
}

void print(const Planned& planned, const launcher::Device& device, std::ostream& out) {
  const matrix::Plan& plan = planned.plan;
  out << fmt::format("profile {} on {} with {} slots, seed {}\n", plan.profile, device.name, device.slots, planned.seed);
  out << fmt::format("{} raw  {} valid  {} filtered  {} negative  {} faults  {} cases planned\n", plan.raw, plan.valid,
                     plan.filtered, plan.negative, plan.faults, planned.lines.size());
  for (const matrix::Removed& removed : plan.removed)
    out << fmt::format("  removed {:>6} by {}\n", removed.rows, removed.rule);
  for (const auto& [verdict, lines] : plan.skipped) out << fmt::format("  {:>14} {}\n", lines, verdict);
  for (const std::string& rule : plan.unknown_rules) out << "  undecided: " << rule << " reads a fact that this machine does not supply\n";
  for (const std::string& text : plan.not_isolated) out << "  not isolated: " << text << "\n";
  double seconds = 0;
  for (const record::PlanLine& line : planned.lines) {
    out << fmt::format("{}  {} rank{}  {:<7}  {:<18}  {}\n", line.id, line.ranks, line.ranks == 1 ? " " : "s",
                       line.isolation, expectation(line), reports::printable(line.name));
    seconds += line.skip ? 0 : line.expected_seconds;
  }
  out << "expected: " << reports::clock_text(seconds) << " one after another\n";
}

record::ExitCode execute(const Options& options, Surroundings& surroundings) {
  const launcher::Device device = device_or_bare(options.plan.device, surroundings);
  const Planned planned = make_plan(options.plan, device, surroundings);
  if (options.json) {
    // Lines, not one value: the same text as plan.jsonl.
    for (const record::PlanLine& line : planned.lines) surroundings.out << record::to_line(line);
    surroundings.err << planned.plan.summary().dump() << "\n";
  } else {
    print(planned, device, surroundings.out);
  }
  return planned.lines.empty() ? record::ExitCode::coverage : record::ExitCode::ok;
}

}  // namespace

Action declare_plan(CLI::App& app) {
  const auto options = std::make_shared<Options>();
  declare(app, options->plan);
  app.add_flag("--json", options->json, "print plan.jsonl; the counts go to the error stream");
  return [options](Surroundings& surroundings) { return execute(*options, surroundings); };
}

}  // namespace graphproof::cli

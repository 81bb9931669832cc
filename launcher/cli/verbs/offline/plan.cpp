// plan: prints what a run would do on this machine. It runs nothing.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <memory>

#include "launcher/cli/device_option.h"
#include "launcher/cli/planning.h"
#include "launcher/cli/verb.h"
#include "matrix/input/input_error.h"
#include "reports/print/terminal.h"
#include "reports/record/text/printable.h"

namespace graphproof::cli {
namespace {

// More than there are shipped rules, most of which remove nothing from most matrices.
constexpr std::size_t kListedIdle = 100;

struct PlanVerbOptions {
  PlanOptions plan;
  std::string explain;
  bool json = false;
};

std::string expectation(const record::PlanLine& line) {
  if (line.skip) return std::string(line.skip->verdict.text());
  if (line.expect.kind == "rejected") return "rejected by " + line.expect.rule;
  if (line.expect.kind == "fault") return "killed by " + line.expect.detector;
  return line.expect.kind;
}

void print(const std::vector<matrix::NotCovered>& list, std::ostream& out) {
  for (const matrix::NotCovered& one : list) {
    std::string values;
    for (const auto& [axis, value] : one.values)
      values += (values.empty() ? "" : " and ") + axis + " == " + value;
    out << fmt::format("  {:<11} {}: {}\n", one.lost ? "lost" : "unreachable", values,
                       fmt::join(one.reason, "; "));
  }
}

void print(const matrix::Covering& covering, bool explain, std::ostream& out) {
  for (const matrix::CoverCount& one : covering.counts) {
    std::string axes = "all axes";
    if (!one.axes.empty()) axes = fmt::format("{}", fmt::join(one.axes, ", "));
    out << fmt::format(
        "combinations of {} values of {}: {:.0f} raw = {:.0f} covered + {:.0f} unreachable + "
        "{:.0f} lost\n",
        one.strength, axes, one.raw, one.covered, one.unreachable, one.lost);
  }
  out << fmt::format("  {} search steps; no plan has fewer than {} rows\n", covering.steps,
                     covering.at_least);
  if (explain)
    print(covering.not_covered, out);
  else if (!covering.not_covered.empty())
    out << "  --explain unreachable lists what is not covered, and why\n";
  if (explain && covering.not_covered_left_out > 0)
    out << "  and " << covering.not_covered_left_out << " more\n";
}

void print(const Planned& planned, const launcher::Device& device, bool explain,
           std::ostream& out) {
  const matrix::Plan& plan = planned.plan;
  const record::GpuSharing& sharing = device.sharing;
  out << fmt::format(
      "profile {} on {} with {} slots{}{}, seed {}\n", plan.profile, device.name, device.slots,
      sharing.ranks_per_gpu > 1 ? fmt::format(" of up to {} ranks", sharing.ranks_per_gpu) : "",
      sharing.cases_per_gpu > 1 ? fmt::format(" for up to {} cases", sharing.cases_per_gpu) : "",
      planned.seed);
  out << turns_line(device.gpus, sharing);
  out << fmt::format("{} raw  {} valid  {} filtered  {} negative  {} faults  {} cases planned\n",
                     plan.raw.text(), plan.valid.text(), plan.filtered.text(), plan.negative,
                     plan.faults, planned.plan.lines.size());
  if (plan.covering) print(*plan.covering, explain, out);
  if (plan.extended)
    out << fmt::format("  of the earlier plan {} kept, {} repaired, {} dropped; {} new\n",
                       plan.extended->kept, plan.extended->repaired, plan.extended->dropped,
                       plan.extended->fresh);
  print(plan.unreachable, out);
  for (const matrix::Removed& removed : plan.removed)
    out << fmt::format("  removed {:>6} by {}\n", removed.rows.text(), removed.rule);
  if (!plan.idle.empty())
    out << fmt::format("  removed nothing: {}\n", matrix::listed(plan.idle, kListedIdle));
  for (const auto& [verdict, lines] : plan.skipped)
    out << fmt::format("  {:>14} {}\n", lines, verdict);
  for (const std::string& rule : plan.unknown_rules)
    out << "  undecided: " << rule << " needs a fact that is not known on this machine\n";
  for (const std::string& text : plan.not_isolated) out << "  not isolated: " << text << "\n";
  double seconds = 0;
  for (const record::PlanLine& line : planned.plan.lines) {
    out << fmt::format("{}  {} rank{}  {:<7}  {:<18}  {}\n", line.id, line.ranks,
                       line.ranks == 1 ? " " : "s", line.isolation, expectation(line),
                       record::printable(line.name));
    seconds += line.skip ? 0 : line.expected_seconds;
  }
  out << "expected: " << reports::clock_text(seconds) << " one after another, "
      << fmt::format("{:.1f}", plan.gpu_minutes())
      << (device.name == "cuda" ? " GPU-minutes\n" : " rank-minutes\n");
}

record::ExitCode execute_plan(const PlanVerbOptions& options, Surroundings& surroundings) {
  const launcher::Device device =
      device_for_planning(options.plan.device, surroundings, options.plan.sharing);
  if (device.rank_program.empty())
    surroundings.err << "planned for the simulated device with an unknown stack, because "
                     << device.note << "\n";
  const Planned planned = make_plan(options.plan, device, surroundings, !options.explain.empty());
  if (options.json) {
    // The text of plan.jsonl, so it is several lines and not one JSON value.
    for (const record::PlanLine& line : planned.plan.lines)
      surroundings.out << record::to_line(line);
    surroundings.err << planned.plan.summary().dump() << "\n";
  } else {
    print(planned, device, !options.explain.empty(), surroundings.out);
  }
  return planned.plan.lines.empty() ? record::ExitCode::coverage : record::ExitCode::ok;
}

}  // namespace

Action declare_plan(CLI::App& app) {
  const auto options = std::make_shared<PlanVerbOptions>();
  declare(app, options->plan);
  app.option_defaults()->group(kOutput);
  app.add_option("--explain", options->explain,
                 "list the values and combinations that no case has, each with the fewest rules "
                 "that forbid it")
      ->type_name("unreachable")
      ->check(CLI::IsMember({"unreachable"}));
  app.add_flag("--json", options->json, "print plan.jsonl; the counts go to standard error");
  return [options](Surroundings& surroundings) { return execute_plan(*options, surroundings); };
}

}  // namespace graphproof::cli

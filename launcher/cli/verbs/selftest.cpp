// selftest: tests whether this installation catches ranks that report wrong results. A few defects,
// one of each kind, are planted into the ranks of this machine. Each must be caught by its
// detector, and the same case without it must pass.
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "launcher/cli/device_option.h"
#include "launcher/cli/planning.h"
#include "launcher/cli/run_options.h"
#include "launcher/cli/show/show_run.h"
#include "launcher/cli/verb.h"
#include "reports/outcome/summary.h"

namespace graphproof::cli {
namespace {

struct SelftestOptions {
  std::string device = "auto";
  bool json = false;
};

/// A kind of wrong result, and the planted fault or the case that produces it. `verdict` is the
/// verdict that the case must end with, or its beginning.
struct Defect {
  std::string_view what, fault, case_name, verdict;
};
constexpr Defect kDefects[] = {
    {"wrong numbers from the second step on", "M23", "", "pass.killed"},
    {"one rank runs eagerly where the others replay", "M56", "", "pass.killed"},
    {"no replay at all, and the numbers agree", "M85", "", "pass.killed"},
    {"the comparison reads the eager result twice", "M49", "", "pass.killed"},
    {"memory that does not come back", "M89", "", "pass.killed"},
    {"one rank stops in the middle and sleeps", "M61", "", "pass.killed"},
    {"communicators end before the graphs", "M54", "", "pass.killed"},
    {"a rank ends without results", "",
     "impl=full_iteration,tp=2,microbatches=2,env.GRAPHPROOF_EXIT=\"replay,1\"", "fail.crash"},
};

/// What became of one defect.
struct DefectResult {
  const Defect* defect = nullptr;
  std::string verdict;     // of the case that has the defect; empty if it was not planned
  std::string clean_twin;  // verdict of the same case without it; empty if there is none
  bool ran = false;        // this machine can run the case

  bool caught() const {
    return !verdict.empty() && record::Verdict::from(verdict)->in(defect->verdict);
  }
  bool as_wanted() const {
    return !ran || (caught() && (clean_twin.empty() || clean_twin == "pass"));
  }
};

std::vector<record::PlanLine> plan_of_defects(const launcher::Device& device,
                                              const Surroundings& surroundings,
                                              std::uint64_t& seed) {
  PlanOptions options{
      .profile = "faults", .matrix_file = "", .where = "", .device = device.name, .seed = {}};
  Planned planned = make_plan(options, device, surroundings);
  seed = planned.seed;
  std::vector<record::PlanLine> lines;
  const auto wanted = [](const record::PlanLine& line) {
    return std::any_of(std::begin(kDefects), std::end(kDefects), [&](const Defect& defect) {
      return !defect.fault.empty() && line.expect.fault == defect.fault;
    });
  };
  for (const record::PlanLine& line : planned.plan.lines) {
    const bool twin = std::any_of(planned.plan.lines.begin(), planned.plan.lines.end(),
                                  [&](const record::PlanLine& other) {
                                    return wanted(other) && other.expect.clean_twin == line.id;
                                  });
    if (twin || wanted(line)) lines.push_back(line);
  }
  for (const Defect& defect : kDefects) {
    if (defect.case_name.empty()) continue;
    const matrix::Case test_case = matrix::case_from_name(
        surroundings.catalogue.axes, std::string(defect.case_name), "selftest");
    lines.push_back(
        matrix::plan_case(surroundings.catalogue, test_case, machine_of(device), "selftest"));
    lines.back().isolation = "process";
  }
  return lines;
}

std::vector<DefectResult> results_of(const reports::RunResult& result) {
  std::vector<DefectResult> found;
  for (const Defect& defect : kDefects) {
    DefectResult one{.defect = &defect};
    for (const reports::CaseResult& ended : result.cases) {
      const bool has_it = defect.fault.empty() ? ended.plan.why == "selftest"
                                               : ended.plan.expect.fault == defect.fault;
      if (!has_it) continue;
      one.verdict = ended.record.verdict.text();
      one.ran = !ended.plan.skip;
      for (const reports::CaseResult& twin : result.cases)
        if (twin.plan.id == ended.plan.expect.clean_twin)
          one.clean_twin = twin.record.verdict.text();
    }
    found.push_back(std::move(one));
  }
  return found;
}

record::ExitCode execute_selftest(const SelftestOptions& options, Surroundings& surroundings) {
  const launcher::Device device = device_of(options.device, surroundings);
  launcher::RunSetup setup = new_run(device, {}, surroundings);
  setup.run.profile = "selftest";
  setup.run.matrix = {"selftest", matrix::sha256_hex("selftest"),
                      surroundings.catalogue.axes.version()};
  setup.plan = plan_of_defects(device, surroundings, setup.run.seed);
  ProgressPrinter printer(surroundings, options.json);
  printer.begin(setup);
  const reports::RunResult result = launcher::run(setup, printer.listener());
  printer.end();
  const std::vector<DefectResult> found = results_of(result);
  const auto ran = std::ranges::count_if(found, &DefectResult::ran);
  const auto missed =
      std::ranges::count_if(found, [](const DefectResult& one) { return !one.as_wanted(); });
  nlohmann::json rows = nlohmann::json::array();
  for (const DefectResult& one : found) {
    rows.push_back({{"lie", one.defect->what},
                    {"verdict", one.verdict},
                    {"want", one.defect->verdict},
                    {"honest", one.clean_twin},
                    {"shown", one.ran},
                    {"well", one.as_wanted()}});
    if (!options.json)
      surroundings.out << fmt::format(
          "{:<9} {:<48} {}{}\n",
          !one.ran          ? "not run"
          : one.as_wanted() ? "caught"
                            : "MISSED",
          one.defect->what, one.verdict,
          one.as_wanted() ? ""
                          : fmt::format("; want {}, and pass without the defect (got {})",
                                        one.defect->verdict, one.clean_twin));
  }
  if (options.json)
    surroundings.out << nlohmann::json{{"run_id", setup.run.run_id},
                                       {"shown", ran},
                                       {"missed", missed},
                                       {"lies", rows}}
                            .dump(2)
                     << "\n";
  else
    surroundings.out << fmt::format("{} of {} defects were caught; evidence in {}\n", ran - missed,
                                    found.size(), setup.folder.string());
  if (result.ending != reports::Ending::finished) return reports::exit_code(result);
  return missed > 0 ? record::ExitCode::product
         : ran == 0 ? record::ExitCode::coverage
                    : record::ExitCode::ok;
}

}  // namespace

Action declare_selftest(CLI::App& app) {
  const auto options = std::make_shared<SelftestOptions>();
  app.add_option("--device", options->device,
                 "auto takes the GPUs if there are any (default: auto)")
      ->type_name(kDevices);
  app.add_flag("--json", options->json, "print one JSON object");
  return [options](Surroundings& surroundings) { return execute_selftest(*options, surroundings); };
}

}  // namespace graphproof::cli

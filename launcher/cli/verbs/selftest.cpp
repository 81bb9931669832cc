// selftest: does this installation catch ranks that lie? A few defects, one for each kind of lie,
// are planted into this machine's own ranks; each must be called by its name, and the same case
// without it must pass.
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "launcher/cli/planning.h"
#include "launcher/cli/show/show_run.h"
#include "launcher/cli/verb.h"
#include "reports/outcome/summary.h"

namespace graphproof::cli {
namespace {

struct SelftestOptions {
  std::string device = "auto";
  bool json = false;
};

/// A lie, and the planted fault or case that tells it. `verdict`: what the case must end as, or the
/// beginning of it.
struct Lie {
  std::string_view what, fault, case_name, verdict;
};
constexpr Lie kLies[] = {
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

struct Caught {
  const Lie* lie = nullptr;
  std::string verdict;  // of the case that tells it; "" if it was not planned
  std::string honest;   // of the same case without it; "" where there is none
  bool shown = false;   // this machine can show it

  bool caught() const {
    return !verdict.empty() && record::Verdict::from(verdict)->in(lie->verdict);
  }
  bool well() const { return !shown || (caught() && (honest.empty() || honest == "pass")); }
};

std::vector<record::PlanLine> lies(const launcher::Device& device, const Surroundings& surroundings,
                                   std::uint64_t& seed) {
  PlanOptions options{
      .profile = "faults", .matrix_file = "", .where = "", .device = device.name, .seed = {}};
  Planned planned = make_plan(options, device, surroundings);
  seed = planned.seed;
  std::vector<record::PlanLine> lines;
  const auto wanted = [](const record::PlanLine& line) {
    return std::any_of(std::begin(kLies), std::end(kLies), [&](const Lie& lie) {
      return !lie.fault.empty() && line.expect.fault == lie.fault;
    });
  };
  for (const record::PlanLine& line : planned.plan.lines) {
    const bool twin = std::any_of(planned.plan.lines.begin(), planned.plan.lines.end(),
                                  [&](const record::PlanLine& other) {
                                    return wanted(other) && other.expect.clean_twin == line.id;
                                  });
    if (twin || wanted(line)) lines.push_back(line);
  }
  for (const Lie& lie : kLies) {
    if (lie.case_name.empty()) continue;
    const matrix::Case test_case =
        matrix::case_from_name(surroundings.catalogue.axes, std::string(lie.case_name), "selftest");
    lines.push_back(
        matrix::plan_case(surroundings.catalogue, test_case, machine_of(device), "selftest"));
    lines.back().isolation = "process";
  }
  return lines;
}

std::vector<Caught> caught(const reports::RunResult& result) {
  std::vector<Caught> found;
  for (const Lie& lie : kLies) {
    Caught one{.lie = &lie};
    for (const reports::CaseResult& told : result.cases) {
      const bool tells =
          lie.fault.empty() ? told.plan.why == "selftest" : told.plan.expect.fault == lie.fault;
      if (!tells) continue;
      one.verdict = told.record.verdict.text();
      one.shown = !told.plan.skip;
      for (const reports::CaseResult& twin : result.cases)
        if (twin.plan.id == told.plan.expect.clean_twin) one.honest = twin.record.verdict.text();
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
  setup.plan = lies(device, surroundings, setup.run.seed);
  ProgressPrinter printer(surroundings, options.json);
  printer.begin(setup);
  const reports::RunResult result = launcher::run(setup, printer.listener());
  printer.end();
  const std::vector<Caught> found = caught(result);
  const auto shown =
      std::count_if(found.begin(), found.end(), [](const Caught& one) { return one.shown; });
  const auto ill =
      std::count_if(found.begin(), found.end(), [](const Caught& one) { return !one.well(); });
  nlohmann::json rows = nlohmann::json::array();
  for (const Caught& one : found) {
    rows.push_back({{"lie", one.lie->what},
                    {"verdict", one.verdict},
                    {"want", one.lie->verdict},
                    {"honest", one.honest},
                    {"shown", one.shown},
                    {"well", one.well()}});
    if (!options.json)
      surroundings.out << fmt::format("{:<9} {:<48} {}{}\n",
                                      !one.shown   ? "not shown"
                                      : one.well() ? "caught"
                                                   : "MISSED",
                                      one.lie->what, one.verdict,
                                      one.well()
                                          ? ""
                                          : fmt::format("; want {} and, without it, pass (got {})",
                                                        one.lie->verdict, one.honest));
  }
  if (options.json)
    surroundings.out << nlohmann::json{{"run_id", setup.run.run_id},
                                       {"shown", shown},
                                       {"missed", ill},
                                       {"lies", rows}}
                            .dump(2)
                     << "\n";
  else
    surroundings.out << fmt::format("{} of {} lies were caught; evidence in {}\n", shown - ill,
                                    found.size(), setup.folder.string());
  if (result.ending != reports::Ending::finished) return reports::exit_code(result);
  return ill > 0      ? record::ExitCode::product
         : shown == 0 ? record::ExitCode::coverage
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

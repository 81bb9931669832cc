// bringup: brings CUDA graphs up for a training configuration or a case, one step after the other.
#include <fmt/format.h>

#include <memory>

#include "launcher/cli/bringup/climb.h"
#include "launcher/cli/device_option.h"
#include "launcher/cli/like.h"
#include "launcher/cli/planning.h"
#include "launcher/cli/run_options.h"
#include "launcher/cli/verb.h"
#include "matrix/input/input_error.h"
#include "matrix/plan/plan.h"
#include "reports/record/text/printable.h"

namespace graphproof::cli {
namespace {

struct BringupOptions {
  LikeOptions like;
  std::string case_name, device = "auto";
  record::GpuSharing sharing;
  std::uint64_t seed = 1;
  bool json = false;
};

matrix::Case target_of(const BringupOptions& options, const matrix::Machine& machine,
                       Surroundings& surroundings) {
  if (options.like.given == !options.case_name.empty())
    throw matrix::InputError({"bringup needs one target", options.like.given ? "both" : "none",
                              "--like FILE, --like -- ARGS..., or the name of a case", "",
                              "graphproof bringup impl=local,tp=2"});
  if (!options.like.given)
    return matrix::case_from_name(surroundings.catalogue.axes, options.case_name, "CASE");
  const Like made = like(options.like, machine, surroundings);
  show(made, surroundings, options.json ? surroundings.err : surroundings.out);
  return made.made.runnable;
}

/// Runs one case in a run of its own.
RungResult run_alone(const matrix::Case& one, const std::string& why, const BringupOptions& options,
                     const launcher::Device& device, const Surroundings& surroundings) {
  record::PlanLine line = matrix::plan_case(surroundings.catalogue, one, machine_of(device), why);
  line.isolation = "process";
  launcher::RunSetup setup = new_run(device, {}, surroundings);
  setup.run.profile = "bringup";
  setup.run.matrix = {"CASE", matrix::sha256_hex(matrix::canonical_text(one)),
                      surroundings.catalogue.axes.version()};
  setup.run.seed = options.seed;
  setup.plan = {line};
  apply_gpu_sharing(setup.plan, device, surroundings.catalogue.checks);
  launcher::RunListener listener;
  listener.notice = [&](const std::string& text) { surroundings.err << text << "\n"; };
  const reports::RunResult run = launcher::run(setup, listener);
  const reports::CaseResult& result = run.cases.front();
  return {.observed = result.record.observed,
          .reason = result.record.reason,
          .checks = result.checks,
          .figures = result.record.figures,
          .reference = setup.run.run_id + "/" + line.id,
          .interrupted = run.ending == reports::Ending::interrupted};
}

void show(const Step& step, int number, std::ostream& out) {
  out << fmt::format("{}. {}: {}\n   {}\n", number, step.name, step.result,
                     record::printable(step.why));
  if (!step.case_name.empty()) out << "   case " << record::printable(step.case_name) << "\n";
  out.flush();
}

record::ExitCode execute_bringup(const BringupOptions& options, Surroundings& surroundings) {
  expect_like(options.like, surroundings, "bringup");
  const launcher::Device device = device_of(options.device, surroundings, options.sharing);
  const matrix::Machine machine = machine_of(device);
  const matrix::Case target = target_of(options, machine, surroundings);
  if (!target.values.contains("impl"))
    throw matrix::InputError({"the target has no CUDA graphs", "axis impl is none",
                              "a configuration or a case with graphs",
                              "there is nothing to bring up", "graphproof list axes"});
  int number = 0;
  const std::vector<Step> steps = climb(
      target, surroundings.catalogue, machine,
      [&](const matrix::Case& one, const std::string& why) {
        return run_alone(one, why, options, device, surroundings);
      },
      [&](const Step& step) {
        show(step, ++number, options.json ? surroundings.err : surroundings.out);
      });
  const Step& last = steps.back();
  const bool through = last.result == "pass";
  std::string next = through ? "measure whether it is worth it: graphproof advise " + last.reference
                     : !last.reference.empty() ? "graphproof explain " + last.reference
                                               : "change what the step names, then the same again";
  if (options.json) {
    record::Json list = record::Json::array();
    for (const Step& step : steps)
      list.push_back({{"step", step.name},
                      {"result", step.result},
                      {"why", step.why},
                      {"case", step.case_name},
                      {"reference", step.reference}});
    surroundings.out << record::Json{{"target",
                                      matrix::case_name(surroundings.catalogue.axes, target)},
                                     {"steps", list},
                                     {"through", through},
                                     {"next", next}}
                            .dump(2)
                     << "\n";
  } else {
    surroundings.out << (through ? "Every step passed.\n"
                                 : "It ends here; later steps were not "
                                   "taken.\n")
                     << "next: " << next << "\n";
  }
  return exit_code(steps);
}

}  // namespace

Action declare_bringup(CLI::App& app) {
  const auto options = std::make_shared<BringupOptions>();
  app.add_option("CASE", options->case_name,
                 "a case with graphs by its name, such as impl=local,tp=2")
      ->type_name("CASE");
  app.add_option("--device", options->device, "where the cases run (default: auto)")
      ->type_name(kDevices);
  declare_ranks_per_gpu(app, options->sharing.ranks_per_gpu);
  app.add_option("--seed", options->seed, "the seed of every run (default: 1)")->type_name("N");
  declare_like(app, options->like);
  app.option_defaults()->group(kOutput);
  app.add_flag("--json", options->json, "print the steps as one JSON object at the end");
  return [options](Surroundings& surroundings) { return execute_bringup(*options, surroundings); };
}

}  // namespace graphproof::cli

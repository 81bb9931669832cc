// run: plan, run, judge, report.
#include <memory>

#include "launcher/cli/planning.h"
#include "launcher/cli/show_run.h"
#include "launcher/cli/verb.h"
#include "matrix/input_error.h"

namespace graphproof::cli {
namespace {

struct Options {
  PlanOptions plan;
  RunOptions run;
  bool json = false;
};

record::ExitCode execute(const Options& options, Surroundings& surroundings) {
  const launcher::Device device = device_of(options.plan.device, surroundings);
  Planned planned = make_plan(options.plan, device, surroundings);
  if (!device.note.empty()) surroundings.err << "on the simulated device, because " << device.note << "\n";
  launcher::RunSetup setup = new_run(device, options.run, surroundings);
  setup.run.profile = planned.plan.profile;
  setup.run.matrix = {planned.plan.matrix_source, planned.plan.matrix_sha256, planned.plan.axes_version};
  setup.run.seed = planned.seed;
  setup.plan = std::move(planned.lines);
  isolate(setup.plan, setup.run.options.isolation);
  if (options.run.budget.empty()) setup.run.options.budget_ms = planned.plan.budget_ms;
  return run_and_show(setup, surroundings, options.json);
}

}  // namespace

Action declare_run(CLI::App& app) {
  const auto options = std::make_shared<Options>();
  declare(app, options->plan);
  declare(app, options->run);
  app.add_flag("--json", options->json, "print summary.json at the end, and nothing else");
  return [options](Surroundings& surroundings) { return execute(*options, surroundings); };
}

}  // namespace graphproof::cli

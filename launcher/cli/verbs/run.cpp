// run: plan, run, judge, report; of a profile, or of the one case that is like a training
// configuration.
#include <charconv>
#include <memory>
#include <optional>

#include "launcher/cli/device_option.h"
#include "launcher/cli/like.h"
#include "launcher/cli/planning.h"
#include "launcher/cli/run_options.h"
#include "launcher/cli/show/show_run.h"
#include "launcher/cli/verb.h"
#include "launcher/run/expectation.h"
#include "launcher/run/merge.h"
#include "matrix/input/input_error.h"
#include "reports/record/job/shard.h"
#include "reports/record/text/file.h"

namespace graphproof::cli {
namespace {

struct RunVerbOptions {
  PlanOptions plan;
  RunOptions run;
  LikeOptions like;
  std::string shard;
  bool json = false;
};

/// The plan of --like, which has one case.
Planned plan_like(const RunVerbOptions& options, const launcher::Device& device,
                  Surroundings& surroundings) {
  for (const auto& [name, given] :
       {std::pair<const char*, const std::string*>{"--profile", &options.plan.profile},
        {"--matrix", &options.plan.matrix_file},
        {"--where", &options.plan.where}})
    if (!given->empty())
      throw matrix::InputError({.what = std::string("--like together with ") + name,
                                .got = *given,
                                .want = "one of them",
                                .why = "--like makes a plan of one case",
                                .next = std::string("drop ") + name,
                                .place = {}});
  const matrix::Machine machine = machine_of(device);
  const Like made = like(options.like, machine, surroundings);
  show(made, surroundings, options.json ? surroundings.err : surroundings.out);
  const std::string why = made.recipe.empty() ? "like a configuration of " + made.dialect
                                              : "like the recipe " + made.recipe;
  Planned planned;
  planned.plan.profile = "like";
  planned.plan.matrix_source = options.like.file.empty() ? "command line" : options.like.file;
  planned.plan.matrix_sha256 = matrix::sha256_hex(matrix::canonical_text(made.made.runnable));
  planned.plan.axes_version = surroundings.catalogue.axes.version();
  planned.plan.lines = {
      matrix::plan_case(surroundings.catalogue, made.made.runnable, machine, why)};
  apply_gpu_sharing(planned.plan.lines, device, surroundings.catalogue.checks);
  planned.seed = options.plan.seed.value_or(1);
  return planned;
}

struct ShardOption {
  int number, count;
};

/// "2/5"; nothing for "".
std::optional<ShardOption> shard_option(const std::string& text) {
  if (text.empty()) return std::nullopt;
  ShardOption shard{0, 0};
  const char* const end = text.data() + text.size();
  const auto first = std::from_chars(text.data(), end, shard.number);
  if (first.ec == std::errc() && first.ptr != end && *first.ptr == '/') {
    const auto second = std::from_chars(first.ptr + 1, end, shard.count);
    if (second.ec == std::errc() && second.ptr == end && shard.number >= 1 &&
        shard.number <= shard.count)
      return shard;
  }
  throw matrix::InputError({"--shard can't be read", text, "I/N with I from 1 to N",
                            "each of the N parts has to be run once",
                            "write --shard 1/4, 2/4, 3/4 and 4/4, and then graphproof merge"});
}

record::ExitCode execute_run(const RunVerbOptions& options, Surroundings& surroundings) {
  expect_like(options.like, surroundings, "run");
  const std::optional<ShardOption> part = shard_option(options.shard);
  const launcher::Device device = device_on(cluster_of(options.run.cluster), options.plan.device,
                                            surroundings, options.plan.sharing);
  Planned planned = options.like.given ? plan_like(options, device, surroundings)
                                       : make_plan(options.plan, device, surroundings);
  if (!device.note.empty())
    surroundings.err << "on the simulated device, because " << device.note << "\n";
  launcher::RunSetup setup = new_run(device, options.run, surroundings);
  setup.run.profile = planned.plan.profile;
  setup.run.matrix = {planned.plan.matrix_source, planned.plan.matrix_sha256,
                      planned.plan.axes_version};
  setup.run.seed = planned.seed;
  setup.plan = std::move(planned.plan.lines);
  apply_isolation(setup.plan, setup.run.options.isolation);
  if (part) {
    const record::Shard shard{part->number, part->count, launcher::sharded_plan_sha256(setup.plan)};
    record::write_json(setup.folder / "shard.json", record::to_json(shard));
    setup.plan = launcher::lines_of(shard, setup.plan);
  }
  launcher::expect(setup.plan, launcher::earlier_seconds(surroundings.runs, device.name));
  if (options.run.budget.empty()) setup.run.options.budget_ms = planned.plan.budget_ms;
  return run_and_show(setup, surroundings, options.json);
}

}  // namespace

Action declare_run(CLI::App& app) {
  const auto options = std::make_shared<RunVerbOptions>();
  declare(app, options->plan);
  app.add_option("--shard", options->shard,
                 "only the I-th of N parts of the plan, such as 1/4; `merge` joins their runs")
      ->type_name("I/N");
  declare(app, options->run);
  declare_like(app, options->like);
  app.option_defaults()->group(kOutput);
  app.add_flag("--json", options->json, "print summary.json at the end and nothing else");
  return [options](Surroundings& surroundings) { return execute_run(*options, surroundings); };
}

}  // namespace graphproof::cli

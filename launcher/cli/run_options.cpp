#include "launcher/cli/run_options.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <vector>

#include "launcher/cli/device_option.h"
#include "launcher/cli/duration_option.h"
#include "launcher/run/run_folder.h"
#include "matrix/input/input_error.h"
#include "reports/record/text/file.h"

namespace graphproof::cli {
namespace {

namespace fs = std::filesystem;

// So many runs measure the rate of a failure well enough. The bound keeps a mistyped number from
// taking days.
constexpr int kMostConfirmations = 1000;

record::Options recorded_options(const RunOptions& options, const Surroundings& surroundings) {
  static const std::vector<std::string> words = {"planned", "process", "batch"};
  record::Options recorded;
  if (!options.isolation.empty()) recorded.isolation = options.isolation;
  if (std::find(words.begin(), words.end(), recorded.isolation) == words.end())
    throw matrix::InputError(
        {"no isolation `" + options.isolation + "`", options.isolation, "process or batch", "",
         matrix::suggestion(options.isolation, words,
                            "--isolation process gives every case its own processes")});
  if (options.max_fail < 0)
    throw matrix::InputError({"--max-fail can't be negative", std::to_string(options.max_fail),
                              "1 or more; 0 for no bound", "", "leave it out for no bound"});
  recorded.max_fail = options.max_fail;
  if (options.max_gpu_minutes < 0 || options.confirm < 0 || options.confirm > kMostConfirmations) {
    const bool minutes = options.max_gpu_minutes < 0;
    throw matrix::InputError(
        {minutes ? "--max-gpu-minutes can't be negative" : "--confirm is out of range",
         minutes ? std::to_string(options.max_gpu_minutes) : std::to_string(options.confirm),
         minutes ? "more than 0; 0 for no bound" : "0 to " + std::to_string(kMostConfirmations), "",
         "leave it out"});
  }
  recorded.max_gpu_ms = static_cast<std::int64_t>(options.max_gpu_minutes * 60000);
  recorded.confirm = options.confirm;
  recorded.budget_ms = duration_option_ms(options.budget, "--budget");
  recorded.limits_ms = surroundings.catalogue.limits;
  return recorded;
}

/// Throws InputError if the stack is another one, because a verdict is about one stack. Host,
/// kernel and environment may differ: a restart of the machine can change them.
void expect_same_stack(const record::Run& recorded, const launcher::Device& device) {
  const auto parts = [](const record::Stack& stack, int slots) {
    return std::vector<std::pair<std::string, std::string>>{
        {"torch", stack.torch_version},
        {"cuda", stack.cuda_version},
        {"nccl", stack.nccl_version},
        {"driver", stack.driver},
        {"cudnn", stack.cudnn_version},
        {"mpi", stack.mpi},
        {"gpus", nlohmann::json(stack.gpus).dump()},
        {"slots", std::to_string(slots)}};
  };
  // Runs of versions before the axis `subject` did not ask for them.
  if (!recorded.stack.python.empty() && recorded.stack.subjects != device.stack.subjects)
    throw matrix::InputError(
        {"the packages of the subjects are not those that run " + recorded.run_id + " began on",
         nlohmann::json::parse(record::to_json(device.stack).dump())
             .value("subjects", nlohmann::json())
             .dump(),
         nlohmann::json::parse(record::to_json(recorded.stack).dump()).at("subjects").dump(),
         "one run is a result about one stack", "start a new run here, and compare the two"});
  const auto then = parts(recorded.stack, recorded.slots), now = parts(device.stack, device.slots);
  for (std::size_t i = 0; i < then.size(); ++i)
    if (then[i] != now[i])
      throw matrix::InputError(
          {"the stack is not the one that run " + recorded.run_id + " began on",
           now[i].first + " " + now[i].second, then[i].first + " " + then[i].second,
           "one run is a result about one stack", "start a new run here, and compare the two"});
}

}  // namespace

void declare(CLI::App& app, RunOptions& options) {
  app.option_defaults()->group("How they run");
  app.add_option("--run-dir", options.run_dir,
                 "the folder of the run, absent or empty (default: runs/RUN_ID)")
      ->type_name("FOLDER");
  app.add_option("--isolation", options.isolation,
                 "process: each case in processes of its own; batch: cases share processes where "
                 "they can (default: as planned)")
      ->type_name("planned|process|batch");
  app.add_flag("--cold", options.cold, "start no ranks before their slots are free");
  app.add_option("--confirm", options.confirm,
                 "run each failure N more times, alone, to measure how often it fails; the failure "
                 "stays a failure")
      ->type_name("N");
  app.option_defaults()->group("When to start no more cases");
  app.add_option("--budget", options.budget,
                 "after this time, such as 30m or 1h30m; `resume` continues the run")
      ->type_name("TIME");
  app.add_option("--max-fail", options.max_fail, "after N failures (default: no limit)")
      ->type_name("N");
  app.add_option("--max-gpu-minutes", options.max_gpu_minutes,
                 "after GPUs have been in use for this many minutes in total (default: no limit)")
      ->type_name("MINUTES");
  declare(app, options.cluster);
}

std::string new_run_id() {
  const auto now = std::chrono::system_clock::now();
  const auto salt = static_cast<std::uint64_t>(now.time_since_epoch().count()) ^
                    (static_cast<std::uint64_t>(getpid()) << 40);
  return launcher::make_run_id(std::chrono::system_clock::to_time_t(now), salt);
}

launcher::RunSetup run_setup(const launcher::Device& device, const RunOptions& options,
                             const Surroundings& surroundings) {
  launcher::RunSetup setup;
  setup.judge_program = launcher::judge_program(surroundings.programs);
  setup.rank_program = device.rank_program;
  setup.gpus = device.gpus;
  setup.run.run_id = new_run_id();
  setup.run_name = setup.run.run_id;
  setup.run.started = launcher::utc_text(std::time(nullptr));
  setup.run.command = surroundings.command_line;
  setup.run.device = device.name;
  setup.run.engine = cluster_of(options.cluster).engine;
  setup.run.slots = device.slots;
  setup.run.stack = device.stack;
  setup.run.options = recorded_options(options, surroundings);
  setup.run.options.sharing = device.sharing;
  if (ranks_take_turns(device.gpus, device.sharing))
    for (auto& [phase, limit_ms] : setup.run.options.limits_ms) limit_ms *= kTimesOfTurns;
  setup.effects = reports::check_effects(surroundings.catalogue.checks);
  setup.prestart = !options.cold;
  return setup;
}

launcher::RunSetup new_run(const launcher::Device& device, const RunOptions& options,
                           const Surroundings& surroundings) {
  launcher::RunSetup setup = run_setup(device, options, surroundings);
  const record::Cluster cluster = cluster_of(options.cluster);
  setup.folder = launcher::create_run_folder(surroundings.runs, options.run_dir, setup.run.run_id);
  write_cluster(cluster, setup.folder);
  setup.allocation = allocation(cluster, setup, surroundings);
  return setup;
}

launcher::RunSetup recorded_run(const fs::path& folder, const Surroundings& surroundings) {
  launcher::RunSetup setup;
  setup.folder = folder;
  setup.run = record::run_from(record::read_json(folder / "run.json"), folder / "run.json");
  setup.run_name = setup.run.run_id;
  setup.plan = record::plan_from(record::read_text(folder / "plan.jsonl"), folder / "plan.jsonl");
  if (const std::string now = launcher::plan_sha256(setup.plan); setup.run.plan_sha256 != now)
    throw matrix::InputError(
        {"the plan of run " + setup.run.run_id + " has changed since the run began",
         setup.run.plan_sha256.empty() ? "a run without plan_sha256, of an older version"
                                       : "SHA-256 " + now,
         setup.run.plan_sha256.empty() ? "a run whose plan was hashed"
                                       : "SHA-256 " + setup.run.plan_sha256,
         "verdicts of one plan and cases of another are not one result",
         "restore plan.jsonl, or start anew: graphproof run --profile " + setup.run.profile});
  const record::Cluster cluster = recorded_cluster(folder);
  const launcher::Device device =
      device_on(cluster, setup.run.device, surroundings, setup.run.options.sharing);
  expect_same_stack(setup.run, device);
  setup.judge_program = launcher::judge_program(surroundings.programs);
  setup.rank_program = device.rank_program;
  setup.gpus = device.gpus;
  setup.effects = reports::check_effects(surroundings.catalogue.checks);
  setup.allocation = allocation(cluster, setup, surroundings);
  return setup;
}

}  // namespace graphproof::cli

#include "launcher/cli/planning.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <ctime>

#include "launcher/cli/input_file.h"
#include "launcher/gpu/nvml.h"
#include "launcher/run/run_folder.h"
#include "matrix/catalogue/limits.h"
#include "matrix/expression/expression.h"
#include "matrix/input/input_error.h"
#include "matrix/plan/matrix_file.h"
#include "reports/record/text/file.h"

namespace graphproof::cli {
namespace {

namespace fs = std::filesystem;

const std::vector<std::string>& device_words() {
  static const std::vector<std::string> words = {"auto", "sim", "cuda"};
  return words;
}

void expect_device(const std::string& wanted) {
  const auto& words = device_words();
  if (std::find(words.begin(), words.end(), wanted) == words.end())
    throw matrix::InputError(
        {"no device `" + wanted + "`", wanted, "auto, sim or cuda", "",
         matrix::suggestion(wanted, words, "--device auto takes the GPUs if there are any")});
}

matrix::MatrixFile matrix_file(const PlanOptions& options, const std::string& profile,
                               const Surroundings& surroundings) {
  if (options.matrix_file.empty())
    return matrix::shipped_matrix_file(profile, surroundings.catalogue);
  return matrix::parse_matrix_file(read_input(options.matrix_file), options.matrix_file,
                                   surroundings.catalogue, read_input);
}

/// The cases of an earlier plan that were expected to pass. `source` is a run or a plan.jsonl.
std::vector<matrix::Case> earlier_cases(const std::string& source,
                                        const Surroundings& surroundings) {
  const fs::path file = fs::is_regular_file(source)
                            ? fs::path(source)
                            : launcher::find_run(surroundings.runs, source) / "plan.jsonl";
  std::vector<matrix::Case> cases;
  for (const record::PlanLine& line : record::plan_from(read_input(file), file))
    if (line.expect.kind != "rejected" && line.expect.kind != "fault")
      cases.push_back(matrix::case_from_json(surroundings.catalogue.axes, line.axes, file));
  return cases;
}

/// --profile, or the only profile of the matrix file, or smoke.
std::string profile_of(const PlanOptions& options, const matrix::MatrixFile* file) {
  if (!options.profile.empty()) return options.profile;
  if (file == nullptr) return "smoke";
  if (file->profiles.size() == 1) return file->profiles.begin()->first;
  std::vector<std::string> names;
  for (const auto& [name, profile] : file->profiles) names.push_back(name);
  throw matrix::InputError({"no profile of " + options.matrix_file + " is chosen", "no --profile",
                            "one of " + matrix::listed(names),
                            "the file has " + std::to_string(names.size()) + " profiles",
                            "add --profile " + names.front()});
}

std::int64_t budget_ms(const std::string& text) {
  if (text.empty()) return 0;
  const matrix::Document document = matrix::parse_document(nlohmann::json(text).dump(), "--budget");
  return matrix::duration_ms(matrix::Located(document));
}

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
  recorded.budget_ms = budget_ms(options.budget);
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
  const auto then = parts(recorded.stack, recorded.slots), now = parts(device.stack, device.slots);
  for (std::size_t i = 0; i < then.size(); ++i)
    if (then[i] != now[i])
      throw matrix::InputError(
          {"the stack is not the one that run " + recorded.run_id + " began on",
           now[i].first + " " + now[i].second, then[i].first + " " + then[i].second,
           "one run is a result about one stack", "start a new run here, and compare the two"});
}

/// `device` with GPUs that up to `ranks_per_gpu` ranks share. Throws InputError if they cannot.
launcher::Device shared(launcher::Device device, int ranks_per_gpu) {
  if (ranks_per_gpu < 1)
    throw matrix::InputError({"--ranks-per-gpu must be at least 1", std::to_string(ranks_per_gpu),
                              "1 or more", "", "leave it out for one GPU for each rank"});
  device.ranks_per_gpu = ranks_per_gpu;
  if (ranks_per_gpu == 1) return device;
  if (device.name != "cuda")
    throw matrix::InputError(
        {"--ranks-per-gpu goes with GPUs",
         "--ranks-per-gpu " + std::to_string(ranks_per_gpu) + " on the simulated device",
         "--device cuda",
         "the simulated device has room for " + std::to_string(device.slots) + " ranks anyway",
         "leave it out, or use --device cuda"});
  const auto nvml = launcher::Nvml::open();
  for (const std::string& gpu : device.gpus)
    if (nvml && nvml->exclusive_process(gpu))
      throw matrix::InputError({"GPU " + gpu + " accepts only one process",
                                "compute mode EXCLUSIVE_PROCESS", "compute mode DEFAULT",
                                "a second rank would get no context on it",
                                "leave --ranks-per-gpu out, or have the mode changed"});
  return device;
}

}  // namespace

void declare(CLI::App& app, PlanOptions& options) {
  app.option_defaults()->group("Which cases");
  app.add_option("--profile", options.profile,
                 "a shipped profile, or one of the matrix file (default: smoke)")
      ->type_name("PROFILE");
  app.add_option("--matrix", options.matrix_file, "a matrix file of your own")->type_name("FILE");
  app.add_option("--where", options.where,
                 "only cases for which this expression is true, such as 'tp == 2'")
      ->type_name("EXPR");
  app.add_option("--device", options.device, "auto takes the GPUs if there are any (default: auto)")
      ->type_name(kDevices);
  declare_ranks_per_gpu(app, options.ranks_per_gpu);
  app.add_option("--seed", options.seed,
                 "the one seed of the run, and of a plan that is drawn at random or covers "
                 "combinations (default: the profile's)")
      ->type_name("N");
  app.add_option("--extend", options.extend,
                 "a run, or a plan.jsonl: keep its cases as far as they are still valid")
      ->type_name("RUN");
}

void declare_ranks_per_gpu(CLI::App& app, int& ranks_per_gpu) {
  app.add_option("--ranks-per-gpu", ranks_per_gpu,
                 "let up to N ranks share a GPU, so that cases with more ranks than GPUs run too; "
                 "their results count, their times do not (default: 1)")
      ->type_name("N");
}

launcher::Device device_of(const std::string& wanted, const Surroundings& surroundings,
                           int ranks_per_gpu) {
  expect_device(wanted);
  return shared(launcher::choose_device(wanted, surroundings.programs), ranks_per_gpu);
}

launcher::Device device_for_planning(const std::string& wanted, const Surroundings& surroundings,
                                     int ranks_per_gpu) {
  expect_device(wanted);
  launcher::Device device{.name = "sim",
                          .rank_program = {},
                          .stack = {},
                          .gpus = {},
                          .slots = launcher::kSimSlots,
                          .note = {}};
  try {
    device = launcher::choose_device(wanted, surroundings.programs);
  } catch (const matrix::InputError&) {
    if (wanted == "cuda") throw;
    device.note = "the rank programs are not built (./graphproof doctor builds them)";
  }
  return shared(std::move(device), ranks_per_gpu);
}

matrix::Machine machine_of(const launcher::Device& device) {
  matrix::Machine machine{device.name, device.most_ranks(), {}};
  if (!device.rank_program.empty())
    machine.stack =
        matrix::stack_variables(nlohmann::json::parse(record::to_json(device.stack).dump()));
  return machine;
}

std::optional<matrix::MatrixFile> recorded_matrix(const record::Run& run,
                                                  const Surroundings& surroundings) {
  const bool shipped = !matrix::shipped_profile_text(run.profile).empty() &&
                       run.matrix.name == "matrix/profiles/" + run.profile + ".json";
  PlanOptions options{.matrix_file = shipped ? "" : run.matrix.name};
  try {
    matrix::MatrixFile file = matrix_file(options, run.profile, surroundings);
    if (file.sha256 == run.matrix.sha256) return file;
  } catch (const matrix::InputError&) {
    // The file is gone, or this version does not read it any more.
  }
  return std::nullopt;
}

Planned make_plan(const PlanOptions& options, const launcher::Device& device,
                  const Surroundings& surroundings, bool explain) {
  const matrix::MatrixFile file = matrix_file(options, profile_of(options, nullptr), surroundings);
  const std::string profile = profile_of(options, options.matrix_file.empty() ? nullptr : &file);
  std::optional<matrix::Expression> where;
  if (!options.where.empty())
    where = matrix::Expression::condition(options.where, file.scope,
                                          matrix::Origin::option("--where", options.where));
  Planned planned;
  matrix::PlanChoices choices{.explain = explain};
  if (options.seed) choices.seed = static_cast<std::int64_t>(*options.seed);
  if (!options.extend.empty()) choices.previous = earlier_cases(options.extend, surroundings);
  planned.plan =
      matrix::make_plan(file, surroundings.catalogue, profile, machine_of(device), where, choices);
  apply_gpu_sharing(planned.plan.lines, device, surroundings.catalogue.checks);
  planned.seed = options.seed.value_or(static_cast<std::uint64_t>(planned.plan.seed));
  return planned;
}

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
  setup.run.options.ranks_per_gpu = device.ranks_per_gpu;
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
      device_on(cluster, setup.run.device, surroundings, setup.run.options.ranks_per_gpu);
  expect_same_stack(setup.run, device);
  setup.judge_program = launcher::judge_program(surroundings.programs);
  setup.rank_program = device.rank_program;
  setup.gpus = device.gpus;
  setup.effects = reports::check_effects(surroundings.catalogue.checks);
  setup.allocation = allocation(cluster, setup, surroundings);
  return setup;
}

void apply_isolation(std::vector<record::PlanLine>& lines, const std::string& isolation) {
  if (isolation.empty() || isolation == "planned") return;
  for (record::PlanLine& line : lines)
    if (line.expect.kind != "fault" && line.expect.kind != "hazard") line.isolation = isolation;
}

void skip_too_large(std::vector<record::PlanLine>& lines, const launcher::Device& device) {
  for (record::PlanLine& line : lines)
    if (!line.skip && line.ranks > device.most_ranks())
      line.skip =
          record::Skip{*record::Verdict::from("skipped.gpus"),
                       std::to_string(line.ranks) + " ranks, but this machine has room for " +
                           std::to_string(device.most_ranks())};
}

void apply_gpu_sharing(std::vector<record::PlanLine>& lines, const launcher::Device& device,
                       const matrix::CheckTable& checks) {
  for (record::PlanLine& line : lines) {
    if (device.ranks_per_gpu == 1 || line.skip || line.ranks <= device.slots) continue;
    // Between ranks that share a GPU, NCCL uses its network. These cases are about its access to
    // the memory of other GPUs of the host.
    if (line.axes.value("model", "") == "collective")
      line.skip = record::Skip{*record::Verdict::from("skipped.gpus"),
                               "it tests how NCCL reaches other GPUs of a host, but " +
                                   std::to_string(line.ranks) + " ranks would share " +
                                   std::to_string(device.slots)};
    std::erase_if(line.required_checks, [&](const std::string& check) {
      const matrix::CheckEntry* entry = checks.find(check);
      return entry != nullptr && entry->own_gpu;
    });
  }
}

FoundCase find_case(const std::string& reference, const Surroundings& surroundings) {
  const matrix::AxisTable& axes = surroundings.catalogue.axes;
  const launcher::CaseReference parts = launcher::split_reference(reference);
  FoundCase found;
  const std::vector<std::string> known_runs = launcher::run_ids(surroundings.runs);
  if (parts.run || !known_runs.empty()) {
    const fs::path run = launcher::find_run(surroundings.runs, parts.run.value_or("latest"));
    const auto plan = record::plan_from(record::read_text(run / "plan.jsonl"), run / "plan.jsonl");
    std::vector<matrix::KnownCase> known;
    for (const record::PlanLine& line : plan) known.push_back({line.id, line.name});
    try {
      found.line = plan.at(matrix::resolve_case(parts.case_text, known));
      found.run = run;
      found.test_case = matrix::case_from_json(axes, found.line->axes, run / "plan.jsonl");
      return found;
    } catch (const matrix::InputError&) {
      // A name has a meaning without a run. Anything else has to be a case of the run.
      const bool name =
          parts.case_text.find('=') != std::string::npos || parts.case_text == "default";
      if (parts.run || !name) throw;
    }
  }
  found.test_case = matrix::case_from_name(axes, parts.case_text, "CASE");
  return found;
}

}  // namespace graphproof::cli

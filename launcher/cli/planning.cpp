#include "launcher/cli/planning.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <ctime>

#include "launcher/run_folder.h"
#include "matrix/expression.h"
#include "matrix/input_error.h"
#include "matrix/matrix_file.h"
#include "reports/record/file.h"

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
    throw matrix::InputError({"no device `" + wanted + "`", wanted, "auto, sim or cuda", "",
                              matrix::suggestion(wanted, words, "--device auto takes the GPUs if there are any")});
}

matrix::MatrixFile matrix_file(const PlanOptions& options, const std::string& profile, const Surroundings& surroundings) {
  if (options.matrix_file.empty()) return matrix::shipped_matrix_file(profile, surroundings.catalogue);
  const fs::path folder = fs::path(options.matrix_file).parent_path();
  const auto read = [](const fs::path& file) {
    try {
      return record::read_text(file);
    } catch (const record::ReadError& error) {
      throw matrix::InputError({"the matrix file can't be read", error.message().got, "a file of graphproof-matrix/1", "",
                                "check the path " + file.string()});
    }
  };
  return matrix::parse_matrix_file(read(options.matrix_file), options.matrix_file, surroundings.catalogue,
                                   [&](const std::string& path) { return read(folder / path); });
}

/// --profile, or the only one that the matrix file has, or smoke.
std::string profile_of(const PlanOptions& options, const matrix::MatrixFile* file) {
  if (!options.profile.empty()) return options.profile;
  if (file == nullptr) return "smoke";
  if (file->profiles.size() == 1) return file->profiles.begin()->first;
  std::vector<std::string> names;
  for (const auto& [name, profile] : file->profiles) names.push_back(name);
  throw matrix::InputError({"which profile of " + options.matrix_file + "?", "no --profile",
                            names.empty() ? "a file with profiles" : "one of " + matrix::listed(names),
                            "the file has " + std::to_string(names.size()) + " profiles",
                            names.empty() ? "add a profile to the file" : "add --profile " + names.front()});
}

}  // namespace

void declare(CLI::App& app, PlanOptions& options) {
  app.add_option("--profile", options.profile, "a shipped profile, or one of the matrix file (default: smoke)");
  app.add_option("--matrix", options.matrix_file, "a matrix file of your own");
  app.add_option("--where", options.where, "run only cases for which this expression holds, such as 'tp == 2'");
  app.add_option("--device", options.device, "auto, sim or cuda (default: auto)");
  app.add_option("--seed", options.seed, "the run's one seed (default: the profile's)");
}

launcher::Device device_of(const std::string& wanted, const Surroundings& surroundings) {
  expect_device(wanted);
  return launcher::choose_device(wanted, surroundings.programs);
}

launcher::Device device_or_bare(const std::string& wanted, const Surroundings& surroundings) {
  expect_device(wanted);
  try {
    return launcher::choose_device(wanted, surroundings.programs);
  } catch (const matrix::InputError&) {
    if (wanted == "cuda") throw;
    return {.name = "sim", .rank_program = {}, .stack = {}, .gpus = {}, .slots = launcher::kSimSlots, .note = {}};
  }
}

matrix::Machine machine_of(const launcher::Device& device) {
  matrix::Machine machine{device.name, device.slots, {}};
  if (!device.rank_program.empty())
    machine.stack = matrix::stack_variables(nlohmann::json::parse(record::to_json(device.stack).dump()));
  return machine;
}

record::PlanLine plan_line(const nlohmann::json& line) { return record::plan_line_from(line, "the plan"); }

Planned make_plan(const PlanOptions& options, const launcher::Device& device, const Surroundings& surroundings) {
  const matrix::MatrixFile file = matrix_file(options, profile_of(options, nullptr), surroundings);
  const std::string profile = profile_of(options, options.matrix_file.empty() ? nullptr : &file);
  std::optional<matrix::Expression> where;
  if (!options.where.empty())
    where = matrix::Expression::condition(options.where, file.scope, matrix::Origin::option("--where", options.where));
  Planned planned;
  planned.plan = matrix::make_plan(file, surroundings.catalogue, profile, machine_of(device), where);
  for (const nlohmann::json& line : planned.plan.lines) planned.lines.push_back(plan_line(line));
  planned.seed = options.seed.value_or(static_cast<std::uint64_t>(planned.plan.seed));
  return planned;
}

launcher::RunSetup new_run(const launcher::Device& device, const std::optional<std::string>& run_dir,
                           const Surroundings& surroundings) {
  const auto now = std::chrono::system_clock::now();
  const std::time_t seconds = std::chrono::system_clock::to_time_t(now);
  const auto salt = static_cast<std::uint64_t>(now.time_since_epoch().count()) ^ (static_cast<std::uint64_t>(getpid()) << 40);
  launcher::RunSetup setup;
  setup.judge_program = launcher::judge_program(surroundings.programs);
  setup.rank_program = device.rank_program;
  setup.gpus = device.gpus;
  setup.run.run_id = launcher::make_run_id(seconds, salt);
  setup.run_name = setup.run.run_id;
  setup.run.started = launcher::utc_text(seconds);
  setup.run.command = surroundings.command_line;
  setup.run.device = device.name;
  setup.run.engine = "local";
  setup.run.slots = device.slots;
  setup.run.stack = device.stack;
  for (const auto& [phase, limit_ms] : surroundings.catalogue.limits)
    if (const auto known = record::phase_from(phase)) setup.limits_ms[*known] = limit_ms;
  setup.effects = reports::check_effects(surroundings.catalogue.checks);
  setup.folder = launcher::create_run_folder(surroundings.runs, run_dir, setup.run.run_id);
  return setup;
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
      // A name needs no run to be understood; anything else was meant to be in it.
      const bool name = parts.case_text.find('=') != std::string::npos || parts.case_text == "default";
      if (parts.run || !name) throw;
    }
  }
  found.test_case = matrix::case_from_name(axes, parts.case_text, "CASE");
  return found;
}

}  // namespace graphproof::cli

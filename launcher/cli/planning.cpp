#include "launcher/cli/planning.h"

#include <algorithm>
#include <filesystem>

#include "launcher/cli/device_option.h"
#include "launcher/cli/input_file.h"
#include "launcher/run/run_folder.h"
#include "matrix/expression/expression.h"
#include "matrix/input/input_error.h"
#include "reports/record/text/file.h"

namespace graphproof::cli {
namespace {

namespace fs = std::filesystem;

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
  declare_sharing(app, options.sharing);
  app.add_option("--seed", options.seed,
                 "the one seed of the run, and of a plan that is drawn at random or covers "
                 "combinations (default: the profile's)")
      ->type_name("N");
  app.add_option("--extend", options.extend,
                 "a run, or a plan.jsonl: keep its cases as far as they are still valid")
      ->type_name("RUN");
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
    if (line.skip || !device.sharing.shared(line.ranks, device.slots)) continue;
    // Between ranks that share a GPU, NCCL uses its network. These cases are about its access to
    // the memory of other GPUs of the host.
    if (line.ranks > device.slots && line.axes.value("model", "") == "collective")
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

}  // namespace graphproof::cli

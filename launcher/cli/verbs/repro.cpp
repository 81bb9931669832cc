// repro: runs one case again, alone, in a new run, and prints its evidence; or writes a script that
// starts its ranks without the launcher, also under a debugger, a checker or a profiler.
#include <memory>

#include "launcher/cli/device_option.h"
#include "launcher/cli/find_case.h"
#include "launcher/cli/planning.h"
#include "launcher/cli/repro_script.h"
#include "launcher/cli/run_options.h"
#include "launcher/cli/show/show_record.h"
#include "launcher/cli/show/show_run.h"
#include "launcher/cli/verb.h"
#include "matrix/input/input_error.h"
#include "reports/analysis/divergence.h"
#include "reports/outcome/summary.h"
#include "reports/record/text/file.h"

namespace graphproof::cli {
namespace {

struct ReproOptions {
  std::string reference, device;
  std::optional<std::string> run_dir, script;
  std::optional<std::uint64_t> seed;
  int ranks_per_gpu = 0;  // 0: as in the recorded run
  std::optional<int> gdb_rank;
  std::string compute_sanitizer;
  bool nsys = false, json = false;
};

/// The tool that the options name. Throws InputError if it can't do anything for this case.
RankTool tool_of(const ReproOptions& options, const record::PlanLine& line,
                 const std::string& device) {
  if (options.gdb_rank) {
    if (*options.gdb_rank < 0 || *options.gdb_rank >= line.ranks)
      throw matrix::InputError({"--gdb-rank names no rank of the case",
                                std::to_string(*options.gdb_rank),
                                "0 to " + std::to_string(line.ranks - 1), "", "--gdb-rank 0"});
    return {.kind = RankTool::Kind::gdb, .rank = *options.gdb_rank, .checker = {}};
  }
  if (!options.compute_sanitizer.empty()) {
    if (device != "cuda")
      throw matrix::InputError({"compute-sanitizer has nothing to check", "--device " + device,
                                "--device cuda",
                                "it looks at what runs on a GPU, and this device has none",
                                "run it on a machine with a GPU"});
    return {.kind = RankTool::Kind::compute_sanitizer, .checker = options.compute_sanitizer};
  }
  if (options.nsys) return {.kind = RankTool::Kind::nsys, .checker = {}};
  // A case of the axis `sanitizer` is that case only under its tool. Plans from before the axis do
  // not name it.
  const std::string sanitizer = line.axes.value("sanitizer", "none");
  if (sanitizer == "none") return {};
  return {.kind = RankTool::Kind::compute_sanitizer, .checker = sanitizer};
}

record::ExitCode write_script(const ReproOptions& options, const record::PlanLine& line,
                              const launcher::Device& device, std::uint64_t seed,
                              Surroundings& surroundings) {
  record::Limits limits_ms = surroundings.catalogue.limits;
  for (const auto& [phase, limit_ms] : line.limits_ms) limits_ms[phase] = limit_ms;
  const RankTool tool = tool_of(options, line, device.name);
  const std::string text = repro_script(line, device, limits_ms, seed, tool);
  const std::string file = options.script.value_or("repro-" + line.id.substr(0, 8) + ".sh");
  if (file == "-") {
    surroundings.out << text;
    return record::ExitCode::ok;
  }
  record::write_atomically(file, text);
  std::filesystem::permissions(file, std::filesystem::perms::owner_all);
  if (options.json)
    surroundings.out << nlohmann::json{{"script", file}, {"case", line.id}}.dump(2) << "\n";
  else
    surroundings.out << "run it: sh " << file << " [FOLDER]\n";
  return record::ExitCode::ok;
}

record::ExitCode execute_repro(const ReproOptions& options, Surroundings& surroundings) {
  const FoundCase found = find_case(options.reference, surroundings);
  std::optional<record::Run> recorded;
  if (found.run)
    recorded =
        record::run_from(record::read_json(*found.run / "run.json"), *found.run / "run.json");
  // By default on the recorded device, because the failure was seen there.
  const std::string wanted = !options.device.empty() ? options.device
                             : recorded              ? recorded->device
                                                     : "auto";
  record::GpuSharing sharing;
  if (options.ranks_per_gpu != 0)
    sharing.ranks_per_gpu = options.ranks_per_gpu;
  else if (recorded && recorded->device == wanted)
    sharing = recorded->options.sharing.without_other_cases();
  const launcher::Device device = device_of(wanted, surroundings, sharing);
  record::PlanLine line =
      matrix::plan_case(surroundings.catalogue, found.test_case, machine_of(device), "repro");
  // On the recorded device the expectation, limits and environment are the recorded ones. Whether
  // the case fits is a question for this machine.
  if (found.line && recorded->device == device.name) {
    const auto skip = line.skip;
    line = *found.line;
    line.skip = skip;
  }
  line.isolation = "process";
  line.why = "repro of " + options.reference;
  const std::uint64_t seed = options.seed.value_or(recorded ? recorded->seed : 1);
  if (options.script || options.gdb_rank || !options.compute_sanitizer.empty() || options.nsys)
    return write_script(options, line, device, seed, surroundings);
  launcher::RunSetup setup = new_run(device, {.run_dir = options.run_dir}, surroundings);
  setup.run.profile = "repro";
  setup.run.matrix =
      recorded
          ? recorded->matrix
          : record::Run::Matrix{"CASE", matrix::sha256_hex(matrix::canonical_text(found.test_case)),
                                surroundings.catalogue.axes.version()};
  setup.run.seed = seed;
  setup.plan = {line};
  apply_gpu_sharing(setup.plan, device, surroundings.catalogue.checks);
  ProgressPrinter printer(surroundings, options.json);
  printer.begin(setup);
  const reports::RunResult result = launcher::run(setup, printer.listener());
  printer.end();
  const record::Record& record = result.cases.front().record;
  const std::filesystem::path attempt = setup.folder / record.artefacts;
  const std::string divergence =
      record.artefacts.empty() ? "" : reports::divergence_text(attempt, record.ranks);
  if (options.json) {
    const nlohmann::json shown = {{"run_id", setup.run.run_id},
                                  {"folder", setup.folder.string()},
                                  {"record", nlohmann::json::parse(record::to_json(record).dump())},
                                  {"divergence", divergence},
                                  {"ranks", evidence_digest(attempt, record.ranks)}};
    surroundings.out << shown.dump(2) << "\n";
  } else {
    if (!record.artefacts.empty()) show_evidence(attempt, record.ranks, surroundings.out);
    show_record(record, surroundings.out);
    show_divergence(divergence, surroundings.out);
    surroundings.out << "evidence in " << attempt.string() << "\n";
  }
  return reports::exit_code(result);
}

}  // namespace

Action declare_repro(CLI::App& app) {
  const auto options = std::make_shared<ReproOptions>();
  app.add_option("CASE", options->reference,
                 "an id prefix, a name such as impl=manual,tp=2, or RUN/CASE")
      ->required()
      ->type_name("CASE");
  app.add_option("--device", options->device,
                 "where to run it (default: the device of the recorded run)")
      ->type_name(kDevices);
  declare_ranks_per_gpu(app, options->ranks_per_gpu);
  app.add_option("--run-dir", options->run_dir,
                 "the folder of the new run, absent or empty (default: runs/RUN_ID)")
      ->type_name("FOLDER");
  app.add_option("--script", options->script,
                 "run nothing; write a shell script that starts the case without its launcher; - "
                 "prints it (default with the three options below: repro-ID.sh)")
      ->type_name("FILE");
  CLI::Option* gdb =
      app.add_option("--gdb-rank", options->gdb_rank,
                     "a script that runs rank R under gdb, or cuda-gdb if there is one")
          ->type_name("R");
  CLI::Option* sanitizer =
      app.add_option("--compute-sanitizer", options->compute_sanitizer,
                     "a script that runs every rank under compute-sanitizer with this --tool")
          ->check(CLI::IsMember({"memcheck", "racecheck", "initcheck", "synccheck"}))
          ->type_name("memcheck|racecheck|initcheck|synccheck")
          ->excludes(gdb);
  app.add_flag("--nsys", options->nsys, "a script that profiles every rank with Nsight Systems")
      ->excludes(gdb)
      ->excludes(sanitizer);
  app.add_option("--seed", options->seed,
                 "the one seed of the run (default: that of the recorded run)")
      ->type_name("N");
  app.add_flag("--json", options->json,
               "print one JSON object: the record, and a digest of each rank's evidence");
  return [options](Surroundings& surroundings) { return execute_repro(*options, surroundings); };
}

}  // namespace graphproof::cli

// doctor: examines whether this host can run cases. A run examines its hosts in the same way before
// the first case and after failures of the infrastructure.
#include <fmt/format.h>

#include <memory>

#include "launcher/cli/device_option.h"
#include "launcher/cli/file_digest.h"
#include "launcher/cli/known_bad_stacks.h"
#include "launcher/cli/show/show_run.h"
#include "launcher/cli/verb.h"
#include "launcher/doctor/doctor.h"
#include "matrix/catalogue/catalogue.h"
#include "reports/record/text/printable.h"

namespace graphproof::cli {
namespace {

struct DoctorOptions {
  std::string device = "auto";
  bool json = false, libraries = false;
};

record::ExitCode execute_doctor(const DoctorOptions& options, Surroundings& surroundings) {
  const launcher::Device device = device_for_planning(options.device, surroundings);
  std::error_code absent;
  const bool exists = std::filesystem::is_directory(surroundings.runs, absent);
  launcher::HostFacts facts =
      launcher::look_at_host(exists ? surroundings.runs : std::filesystem::current_path(),
                             device.name, device.slots, device.gpus, device.rank_program);
  if (device.slots > 1 && !device.rank_program.empty())
    facts.all_reduce =
        launcher::try_all_reduce(device.rank_program, device.name, device.slots, device.gpus);
  const matrix::Machine machine = machine_of(device);
  if (!machine.stack.empty())
    facts.bad_versions = bad_versions_of(machine, matrix::load_bad_stacks());
  const std::vector<launcher::Finding> findings = launcher::examine(facts);
  const auto health = launcher::worst(findings);
  auto libraries = nlohmann::ordered_json::array();
  launcher::RankLibraries found;
  if (options.libraries && !device.rank_program.empty())
    found = launcher::rank_libraries(device.rank_program);
  for (const std::string& path : found.paths)
    libraries.push_back({{"path", path}, {"sha256", sha256_of_file(path)}});
  if (options.json) {
    nlohmann::ordered_json value = launcher::to_json(facts, findings);
    if (options.libraries) {
      value["libraries"] = libraries;
      value["libraries_incomplete"] = found.incomplete;
    }
    surroundings.out << value.dump(2) << "\n";
  } else {
    if (!device.rank_program.empty())
      surroundings.out << stack_line(device.stack) << "\n" << subjects_line(device.stack);
    for (const launcher::Finding& one : findings)
      surroundings.out << fmt::format(
          "{:<8} {:<20} {}{}\n", launcher::name(one.health), one.check, record::printable(one.got),
          one.health == launcher::Health::ok
              ? ""
              : "; want " + one.want + "; why: " + one.why + "; next: " + one.next);
    for (const auto& one : libraries)
      surroundings.out << one.at("sha256").get<std::string>() << "  "
                       << record::printable(one.at("path").get<std::string>()) << "\n";
    if (!found.incomplete.empty())
      surroundings.out << "libraries that are opened during a step are missing: "
                       << record::printable(found.incomplete) << "\n";
    surroundings.out << fmt::format("{}: {} ({} slots on {})\n", facts.host, launcher::name(health),
                                    facts.slots, facts.device);
  }
  return health == launcher::Health::failure ? record::ExitCode::infrastructure
                                             : record::ExitCode::ok;
}

}  // namespace

Action declare_doctor(CLI::App& app) {
  const auto options = std::make_shared<DoctorOptions>();
  app.add_option("--device", options->device,
                 "auto takes the GPUs if there are any (default: auto)")
      ->type_name(kDevices);
  app.add_flag("--libraries", options->libraries,
               "also the SHA-256 of every library that the ranks load");
  app.add_flag("--json", options->json, "print one JSON object of graphproof-doctor/1");
  return [options](Surroundings& surroundings) { return execute_doctor(*options, surroundings); };
}

}  // namespace graphproof::cli

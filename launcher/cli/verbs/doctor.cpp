// doctor: examines whether this host can run cases. A run examines its hosts in the same way before
// the first case and after failures of the infrastructure.
#include <fmt/format.h>

#include <memory>

#include "launcher/cli/device_option.h"
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
  bool json = false;
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
  if (options.json) {
    surroundings.out << launcher::to_json(facts, findings).dump(2) << "\n";
  } else {
    if (!device.rank_program.empty())
      surroundings.out << stack_line(device.stack) << "\n" << subjects_line(device.stack);
    for (const launcher::Finding& one : findings)
      surroundings.out << fmt::format(
          "{:<8} {:<20} {}{}\n", launcher::name(one.health), one.check, record::printable(one.got),
          one.health == launcher::Health::ok
              ? ""
              : "; want " + one.want + "; why: " + one.why + "; next: " + one.next);
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
  app.add_flag("--json", options->json, "print one JSON object of graphproof-doctor/1");
  return [options](Surroundings& surroundings) { return execute_doctor(*options, surroundings); };
}

}  // namespace graphproof::cli

#include "launcher/cli/device_option.h"

#include <algorithm>

#include "launcher/backend/subjects.h"
#include "launcher/gpu/nvml.h"
#include "launcher/host/processes.h"
#include "matrix/input/input_error.h"

namespace graphproof::cli {
namespace {

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

/// Asks this host's Python which subjects it can run. On the simulated device none can be run.
void ask_for_subjects(launcher::Device& device, const Surroundings& surroundings) {
  if (device.name != "cuda") return;
  const launcher::Environment own = launcher::own_environment();
  launcher::ask_for_subjects(device.stack, other_subjects(surroundings.catalogue),
                             launcher::pythons(own), [&](const std::string& python) {
                               return launcher::Command{
                                   launcher::subjects_command(python, surroundings.programs, own),
                                   own};
                             });
}

void expect_at_least_one(const std::string& option, int value) {
  if (value < 1)
    throw matrix::InputError({option + " must be at least 1", std::to_string(value), "1 or more",
                              "", "leave it out for one GPU for each rank"});
}

/// `device` with GPUs that are shared in this way. Throws InputError if they cannot be.
launcher::Device shared(launcher::Device device, const record::GpuSharing& sharing) {
  expect_at_least_one("--ranks-per-gpu", sharing.ranks_per_gpu);
  expect_at_least_one("--cases-per-gpu", sharing.cases_per_gpu);
  device.sharing = sharing;
  if (sharing == record::GpuSharing()) return device;
  if (device.name != "cuda") {
    const bool ranks = sharing.ranks_per_gpu > 1;
    const std::string option = ranks ? "--ranks-per-gpu" : "--cases-per-gpu";
    throw matrix::InputError(
        {option + " goes with GPUs",
         option + " " + std::to_string(ranks ? sharing.ranks_per_gpu : sharing.cases_per_gpu) +
             " on the simulated device",
         "--device cuda",
         "the simulated device has room for " + std::to_string(device.slots) + " ranks anyway",
         "leave it out, or use --device cuda"});
  }
  const auto nvml = launcher::Nvml::open();
  for (const std::string& gpu : device.gpus)
    if (nvml && nvml->exclusive_process(gpu))
      throw matrix::InputError({"GPU " + gpu + " accepts only one process",
                                "compute mode EXCLUSIVE_PROCESS", "compute mode DEFAULT",
                                "a second rank would get no context on it",
                                "leave --ranks-per-gpu and --cases-per-gpu out, or have the mode "
                                "changed"});
  return device;
}

}  // namespace

std::vector<std::string> other_subjects(const matrix::Catalogue& catalogue) {
  std::vector<std::string> names;
  for (const matrix::Subject& subject : catalogue.subjects.subjects())
    if (subject.name != matrix::kReference) names.push_back(subject.name);
  return names;
}

void declare_ranks_per_gpu(CLI::App& app, int& ranks_per_gpu) {
  app.add_option("--ranks-per-gpu", ranks_per_gpu,
                 "let up to N ranks share a GPU, so that cases with more ranks than GPUs run too; "
                 "their results count, their times do not (default: 1)")
      ->type_name("N");
}

void declare_sharing(CLI::App& app, record::GpuSharing& sharing) {
  declare_ranks_per_gpu(app, sharing.ranks_per_gpu);
  app.add_option("--cases-per-gpu", sharing.cases_per_gpu,
                 "run up to N cases of one rank for each GPU at the same time on all GPUs; their "
                 "results count, their times and what the driver counts on a GPU do not "
                 "(default: 1)")
      ->type_name("N");
}

launcher::Device device_of(const std::string& wanted, const Surroundings& surroundings,
                           const record::GpuSharing& sharing) {
  expect_device(wanted);
  launcher::Device device = launcher::choose_device(wanted, surroundings.programs);
  ask_for_subjects(device, surroundings);
  return shared(std::move(device), sharing);
}

launcher::Device device_for_planning(const std::string& wanted, const Surroundings& surroundings,
                                     const record::GpuSharing& sharing) {
  expect_device(wanted);
  launcher::Device device{.name = "sim",
                          .rank_program = {},
                          .stack = {},
                          .gpus = {},
                          .slots = launcher::kSimSlots,
                          .note = {}};
  try {
    device = launcher::choose_device(wanted, surroundings.programs);
    ask_for_subjects(device, surroundings);
  } catch (const matrix::InputError&) {
    if (wanted == "cuda") throw;
    device.note = "the rank programs are not built (./graphproof doctor builds them)";
  }
  return shared(std::move(device), sharing);
}

bool ranks_take_turns(const std::vector<std::string>& gpus, const record::GpuSharing& sharing) {
  // A process's name is cut to 15 characters.
  const auto of_service = [](const launcher::Process& process) {
    return process.command.starts_with("nvidia-cuda-mps");
  };
  return !gpus.empty() && sharing.ranks_per_gpu > 1 &&
         !std::ranges::any_of(launcher::running_processes(), of_service);
}

std::string turns_line(const std::vector<std::string>& gpus, const record::GpuSharing& sharing) {
  if (!ranks_take_turns(gpus, sharing)) return "";
  return "ranks of one GPU take turns, which takes " + std::to_string(kTimesOfTurns) +
         " times as long and more, because CUDA's Multi-Process Service does not run here; next: "
         "nvidia-cuda-mps-control -d, ahead of the run\n";
}

matrix::Machine machine_of(const launcher::Device& device) {
  matrix::Machine machine{device.name, device.most_ranks(), {}};
  if (!device.rank_program.empty())
    machine.stack =
        matrix::stack_variables(nlohmann::json::parse(record::to_json(device.stack).dump()));
  for (const auto& [subject, state] : device.stack.subjects)
    if (!state.available) machine.unavailable[subject] = state.why;
  return machine;
}

}  // namespace graphproof::cli

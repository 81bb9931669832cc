#include "launcher/cli/device_option.h"

#include <algorithm>

#include "launcher/gpu/nvml.h"
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

}  // namespace graphproof::cli

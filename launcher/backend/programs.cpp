#include "launcher/backend/programs.h"

#include <sstream>
#include <system_error>

#include "launcher/backend/local_command.h"
#include "launcher/host/child.h"
#include "matrix/input/input_error.h"
#include "reports/record/text/file.h"

namespace graphproof::launcher {
namespace {

namespace fs = std::filesystem;

// On the first call LibTorch and the driver are loaded from cold storage.
constexpr std::int64_t kFingerprint_ms = 60000;
// The last lines of a program explain why it ended.
constexpr std::size_t kShown = 400;

std::string tail(const std::string& text) {
  return text.size() <= kShown ? text : "..." + text.substr(text.size() - kShown);
}

std::string ending(const Output& output, std::int64_t deadline_ms) {
  if (output.timed_out) return "no answer in " + std::to_string(deadline_ms / 1000) + " s";
  return (output.exit.signalled ? "signal " : "exit code ") + std::to_string(output.exit.value) +
         (output.error.empty() ? "" : ": " + tail(output.error));
}

/// The line with the object. Libraries print what they like before it.
std::string object_line(const std::string& text) {
  std::istringstream lines(text);
  std::string found;
  for (std::string line; std::getline(lines, line);)
    if (!line.empty() && line.front() == '{') found = line;
  return found;
}

std::vector<std::string> visible_gpus(std::size_t count, const Environment& environment) {
  std::vector<std::string> gpus;
  if (const auto set = environment.find("CUDA_VISIBLE_DEVICES"); set != environment.end()) {
    std::istringstream names(set->second);
    for (std::string name; std::getline(names, name, ',') && gpus.size() < count;)
      gpus.push_back(name);
  }
  for (std::size_t gpu = gpus.size(); gpu < count; ++gpu) gpus.push_back(std::to_string(gpu));
  return gpus;
}

fs::path place_of(std::string_view device, const fs::path& folder) {
  return folder / ("graphproof-rank-" + std::string(device));
}

bool present(const fs::path& program) {
  std::error_code absent;
  return fs::is_regular_file(program, absent);
}

[[noreturn]] void missing(const fs::path& program, const std::string& why,
                          const std::string& next) {
  throw matrix::InputError({"a program of graphproof is missing", "no " + program.string(),
                            "it in the folder of this program", why, next});
}

}  // namespace

fs::path own_folder() { return fs::read_symlink("/proc/self/exe").parent_path(); }

fs::path rank_program(std::string_view device, const fs::path& folder) {
  const fs::path program = place_of(device, folder);
  if (!present(program))
    missing(program, "--device " + std::string(device) + " runs the cases through it",
            "build the target " + program.filename().string());
  return program;
}

record::Stack fingerprint(const fs::path& rank_program) {
  return fingerprint({{rank_program, "--fingerprint"}, own_environment()}, kFingerprint_ms);
}

record::Stack fingerprint(const Command& command, std::int64_t deadline_ms) {
  Environment environment = command.environment;
  environment.insert_or_assign("CUDA_DEVICE_ORDER", "PCI_BUS_ID");
  const fs::path rank_program = command.arguments.at(command.arguments.size() - 2);
  Output output;
  try {
    output = run_to_end({command.arguments, environment}, deadline_ms);
  } catch (const std::system_error& error) {
    output.exit.value = 127;
    output.error = error.what();
  }
  const std::string line = object_line(output.out);
  if (output.timed_out || output.exit != Exit{} || line.empty())
    throw matrix::InputError(
        {"the stack could not be read from " + rank_program.filename().string(),
         ending(output, deadline_ms), "one JSON object on standard output and exit code 0",
         "every result is a result about a stack",
         "run `" + rank_program.string() + " --fingerprint` by hand"});
  const std::string where = rank_program.filename().string() + " --fingerprint";
  record::Stack stack = record::stack_from(record::Fields(record::parse_json(line, where), where));
  for (auto& [name, value] : stack.environment) value = redacted(name, value);
  return stack;
}

fs::path judge_program(const fs::path& folder) {
  const fs::path program = folder / "graphproof-judge";
  if (!present(program))
    missing(program, "without it no evidence becomes a verdict",
            "build the target graphproof-judge");
  return program;
}

Device choose_device(std::string_view wanted, const fs::path& folder) {
  const fs::path cuda = place_of("cuda", folder), sim = place_of("sim", folder);
  Device device;
  std::string note;
  if (wanted == "cuda" && !present(cuda))
    missing(
        cuda, "--device cuda runs the cases through it",
        "build it where a CUDA toolkit and PyTorch's CUDA half are installed, or use --device sim");
  if (wanted == "cuda" || (wanted == "auto" && present(cuda))) {
    try {
      device.stack = fingerprint(cuda);
      note = "graphproof-rank-cuda sees no GPU";
    } catch (const matrix::InputError& error) {
      if (wanted == "cuda") throw;
      note = error.problem().what + ": " + error.problem().got;
    }
    device.gpus = visible_gpus(device.stack.gpus.size(), own_environment());
    device.name = "cuda";
    device.rank_program = cuda;
    device.slots = static_cast<int>(device.gpus.size());
    if (device.slots > 0) return device;
    if (wanted == "cuda")
      throw matrix::InputError(
          {"--device cuda finds no GPU", "0 GPUs", "at least 1",
           "the CUDA driver of this machine reports none to a rank program",
           "check `nvidia-smi` and CUDA_VISIBLE_DEVICES, or use --device sim"});
  }
  if (!present(sim))
    missing(sim, "--device " + std::string(wanted) + " runs the cases through it on this machine",
            "build the target graphproof-rank-sim, which needs PyTorch and Open MPI");
  return {"sim", sim, fingerprint(sim), {}, kSimSlots, note};
}

}  // namespace graphproof::launcher

#include "launcher/cli/bundle/reproducer.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include "launcher/backend/local_command.h"
#include "matrix/input/input_error.h"
#include "matrix/plan/plan_line.h"
#include "reports/record/text/file.h"

namespace graphproof::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPlace = "r\"\"\"{}\"\"\"";

/// Axes that the programs read, or that they need not: their values are in the environment.
constexpr std::array<std::string_view, 12> kOfCollectives = {
    "impl",      "dp",   "model",        "collective",          "collective_bytes", "placement",
    "allocator", "comm", "capture_mode", "nccl_graph_register", "warmup_steps",     "steps"};
constexpr std::array<std::string_view, 32> kOfTraining = {"subject",
                                                          "impl",
                                                          "modules",
                                                          "dp",
                                                          "comm",
                                                          "microbatches",
                                                          "microbatch_size",
                                                          "seq_length",
                                                          "hidden",
                                                          "heads",
                                                          "ffn",
                                                          "vocab",
                                                          "layers",
                                                          "dropout",
                                                          "precision",
                                                          "optimizer",
                                                          "optimizer_kernels",
                                                          "optimizer_graph",
                                                          "weight_decay",
                                                          "clip_grad",
                                                          "overlap_grad_reduce",
                                                          "autocast_cache",
                                                          "capture_mode",
                                                          "normalization",
                                                          "activation",
                                                          "linear_bias",
                                                          "qkv_bias",
                                                          "pool",
                                                          "warmup_steps",
                                                          "steps",
                                                          "allocator",
                                                          "autograd_threads"};
constexpr std::array<std::string_view, 3> kInEnvironment = {"nccl_algo", "nccl_proto",
                                                            "nccl_graph_register"};

/// Why the program cannot repeat the case; "" if it can.
std::string unknown_value(const matrix::Case& test_case, const nlohmann::json& axes,
                          bool collective) {
  for (const auto& [axis, value] : test_case.values) {
    const bool known = axis.starts_with("env.") || std::ranges::count(kInEnvironment, axis) > 0 ||
                       (collective ? std::ranges::count(kOfCollectives, axis)
                                   : std::ranges::count(kOfTraining, axis)) > 0;
    if (!known)
      return "it does not know axis " + axis + ", which is " + axes.at(axis).dump() + " here";
  }
  if (!collective && axes.at("precision") == "fp16")
    return "it does not know precision fp16, whose loss scale has a state of its own";
  return "";
}

/// The variables that a person has to set for the same libraries to do the same.
record::Json environment_of(const record::PlanLine& line,
                            const std::map<std::string, std::string>& own) {
  launcher::Environment recorded(own.begin(), own.end());
  const launcher::Job job{.world_size = line.ranks,
                          .device = "cuda",
                          .gpus = {},
                          .program = "rank",
                          .python = {},
                          .switches = {},
                          .batch_file = {},
                          .node_folder = {},
                          .shm_folder = {},
                          .mark = {},
                          .environment = {line.environment.begin(), line.environment.end()}};
  record::Json kept = record::Json::object();
  for (const auto& [name, value] : launcher::local_command(job, recorded).environment) {
    const bool of_libraries = std::ranges::any_of(
        std::array<std::string_view, 5>{"NCCL_", "CUBLAS_", "PYTORCH_", "TORCH_", "CUDA_"},
        [&](std::string_view prefix) { return name.starts_with(prefix); });
    // Where things are, and what an image says of itself.
    const bool local = name == "CUDA_VISIBLE_DEVICES" || name == "CUDA_HOME" ||
                       name == "CUDA_PATH" || name.ends_with("_VERSION") ||
                       name.ends_with("_ARCH_LIST") || value.find('/') != value.npos;
    if ((of_libraries && !local) || line.environment.contains(name))
      kept[name] = launcher::redacted(name, value);
  }
  return kept;
}

std::string program_text(const fs::path& programs, const char* name) {
  const fs::path file =
      launcher::python_packages(programs) / "graphproof/reproducers" / (std::string(name) + ".py");
  try {
    return record::read_text(file);
  } catch (const record::ReadError& error) {
    throw matrix::InputError({"the program that repeats a case is missing", error.message().got,
                              file.string(), "the archive gets a copy of it",
                              "run graphproof from its tree, which has it in python/"});
  }
}

}  // namespace

Reproducer reproducer_of(const matrix::Case& test_case, const record::PlanLine& line,
                         std::uint64_t seed, const std::map<std::string, std::string>& environment,
                         const fs::path& programs) {
  const std::string subject = matrix::subject_of(line);
  const bool collective = subject == matrix::kReference && line.axes.at("model") == "collective";
  if (line.axes.at("fault") != "none")
    return {.why_not = "the case has a fault that graphproof plants into its own code"};
  if (!collective && subject != "torch")
    return {.why_not = "there is one for single collectives and for subject torch, and this is " +
                       (subject == matrix::kReference ? std::string("a model of graphproof's own")
                                                      : "subject " + subject)};
  if (const std::string why = unknown_value(test_case, line.axes, collective); !why.empty())
    return {.why_not = why};
  record::Json filled = record::Json::object();
  for (const auto& [axis, value] : line.axes.items()) filled[axis] = value;
  filled["seed"] = seed;
  filled["environment"] = environment_of(line, environment);
  std::string text = program_text(programs, collective ? "collective" : "training");
  text.replace(text.find(kPlace), kPlace.size(), "r\"\"\"" + filled.dump(2) + "\"\"\"");
  return {.text = text,
          .command = line.ranks == 1 ? "python3 reproducer.py"
                                     : "torchrun --nproc-per-node " + std::to_string(line.ranks) +
                                           " reproducer.py",
          .why_not = {}};
}

}  // namespace graphproof::cli

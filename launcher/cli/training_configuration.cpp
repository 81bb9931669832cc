#include "launcher/cli/training_configuration.h"

#include <algorithm>
#include <charconv>
#include <filesystem>

#include "launcher/cli/input_file.h"
#include "launcher/cli/yaml_document.h"
#include "matrix/dialect/command_line.h"
#include "matrix/dialect/config_file.h"
#include "matrix/input/input_error.h"

namespace graphproof::cli {
namespace {

// The largest configurations that upstream writes have a few hundred KiB. YAML of this size takes
// seconds to read.
constexpr std::uintmax_t kLargestFile_bytes = 8u << 20;

std::pair<std::string, std::string> assignment(const std::string& text, const char* option) {
  const std::size_t equals = text.find('=');
  if (equals == 0 || equals == std::string::npos)
    throw matrix::InputError(
        {.what = std::string(option) + " without a value",
         .got = text,
         .want = "NAME=VALUE",
         .why = "an empty value is written NAME=",
         .next = "write " + std::string(option) + " " + text.substr(0, equals) + "=VALUE",
         .place = {}});
  return {text.substr(0, equals), text.substr(equals + 1)};
}

std::string compute_capability(const std::string& arch) {
  std::string digits = arch.starts_with("sm_") ? arch.substr(3) : arch;
  if (!digits.empty() && (digits.back() == 'a' || digits.back() == 'f')) digits.pop_back();
  if (digits.size() < 2 || digits.size() > 4 ||
      digits.find_first_not_of("0123456789") != std::string::npos)
    throw matrix::InputError({.what = "an architecture that can't be read",
                              .got = arch,
                              .want = "sm_90, sm_100 and the like",
                              .why = "",
                              .next = "write --arch sm_90 for a Hopper GPU",
                              .place = {}});
  return digits;
}

matrix::Document read_document(const std::string& path) {
  std::error_code error;
  const std::uintmax_t size_bytes = std::filesystem::file_size(path, error);
  if (error)
    throw matrix::InputError({.what = "`" + path + "` can't be read",
                              .got = error.message(),
                              .want = "a JSON or YAML file, or `-- ARGS...`",
                              .why = "",
                              .next = "check the path; write a command line after `--`",
                              .place = {}});
  if (size_bytes > kLargestFile_bytes)
    throw matrix::InputError({.what = "a configuration file that is too large",
                              .got = std::to_string(size_bytes) + " bytes",
                              .want = "at most 8 MiB",
                              .why = "",
                              .next = "give the configuration alone",
                              .place = {}});
  const std::string content = read_input(path);
  const std::size_t begin = content.find_first_not_of(" \t\r\n");
  const bool json =
      path.ends_with(".json") ||
      (!path.ends_with(".yaml") && !path.ends_with(".yml") && begin != std::string::npos &&
       (content[begin] == '{' || content.compare(begin, 2, "//") == 0));
  return json ? matrix::parse_document(content, path) : yaml_document(content, path);
}

bool is_case(const matrix::Document& document, const matrix::AxisTable& axes) {
  // `model` is an axis of graphproof and also a section of Megatron Bridge's configuration
  // container.
  return document.value.is_object() && !document.value.empty() &&
         !(document.value.contains("model") && document.value["model"].is_object()) &&
         std::all_of(document.value.items().begin(), document.value.items().end(),
                     [&](const auto& member) { return axes.find(member.key()) != nullptr; });
}

std::string dialect_of(const matrix::Document& document) {
  if (!document.value.is_object()) return "megatron-lm";
  if (document.value.contains("call")) return "pytorch";
  const auto section = [&](const char* name) {
    return document.value.contains(name) && document.value[name].is_object();
  };
  const bool container = section("model") &&
                         (section("ddp") || section("train") || section("rng") || section("dist") ||
                          section("optimizer") || section("rerun_state_machine") ||
                          section("comm_overlap") || section("dataset"));
  const bool bridge =
      document.value.contains("_target_") && document.value["_target_"].is_string() &&
      document.value["_target_"].get<std::string>().find("megatron.bridge") != std::string::npos;
  return container || bridge || (section("model") && document.value["model"].contains("_target_"))
             ? "megatron-bridge"
             : "megatron-lm";
}

/// Whether the options are those of Megatron Bridge's performance harness, which spells them with
/// underscores: --cuda_graph_impl.
bool is_harness(const dialect::OptionTable& options, const std::vector<std::string>& words,
                std::size_t begin) {
  int harness = 0, megatron = 0;
  for (std::size_t i = begin; i < words.size(); ++i) {
    const std::string flag = words[i].substr(0, words[i].find('='));
    harness += options.flag(flag, true) != nullptr;
    megatron += options.flag(flag, false) != nullptr;
  }
  return harness > megatron;
}

}  // namespace

void declare(CLI::App& app, ConfigurationOptions& options) {
  app.add_option("FILE", options.file,
                 "a configuration as JSON or YAML, or the name of a case; write a command line as "
                 "`-- ARGS...`")
      ->type_name("FILE");
  declare_job(app, options);
}

void declare_job(CLI::App& app, ConfigurationOptions& options) {
  app.add_option("--dialect", options.dialect,
                 "whose options these are (default: detected from the input)")
      ->type_name("megatron-lm|megatron-bridge|legacy|pytorch|graphproof");
  app.add_option("--version", options.version,
                 "a day of upstream's main branch, such as 2026-08-22, or the release 0.19.2 "
                 "(default: the newest)")
      ->type_name("DATE");
  app.add_option("--world-size", options.world_size, "the number of ranks of the job")
      ->type_name("N")
      ->check(CLI::Range(1, 1 << 20));
  app.add_option("--arch", options.arch, "the GPU architecture, such as sm_90")->type_name("ARCH");
  app.add_option("--env", options.environment,
                 "a variable of the job's environment; others count as not set; may be given "
                 "several times")
      ->allow_extra_args(false)
      ->type_name("NAME=VALUE");
  app.add_option("--stack", options.stack,
                 "a fact about the software, such as torch_version=2.11 or te_version=none; facts "
                 "that are not given are unknown; may be given several times")
      ->allow_extra_args(false)
      ->type_name("NAME=VALUE");
}

TrainingConfiguration read_training_configuration(const ConfigurationOptions& options,
                                                  const Surroundings& surroundings) {
  const std::vector<std::string>& words = surroundings.words;
  if (options.file.empty() == words.empty())
    throw matrix::InputError(
        {.what = words.empty() ? "no configuration" : "a file and a command line",
         .got = words.empty() ? "neither FILE nor arguments after `--`" : options.file,
         .want = "either FILE or -- ARGS...",
         .why = "",
         .next = "graphproof check config.json, or graphproof check -- --cuda-graph-impl local",
         .place = {}});
  std::vector<std::pair<std::string, std::string>> environment, stack;
  for (const std::string& text : options.environment)
    environment.push_back(assignment(text, "--env"));
  for (const std::string& text : options.stack) stack.push_back(assignment(text, "--stack"));
  if (!options.arch.empty()) stack.emplace_back("sm", compute_capability(options.arch));

  TrainingConfiguration result;
  UpstreamConfiguration upstream;
  upstream.detected = options.dialect.empty();
  if (words.empty()) {
    const std::string& name = options.file;
    const bool case_name = !std::filesystem::exists(name) && name.find('=') != std::string::npos &&
                           name.find('/') == std::string::npos;
    if (!case_name) {
      upstream.document = read_document(name);
      result.file = name;
    }
    const bool own = options.dialect == "graphproof" ||
                     (options.dialect.empty() &&
                      (case_name || is_case(*upstream.document, surroundings.catalogue.axes)));
    if (own || case_name) {
      OwnCase own_case{
          .test_case = case_name ? matrix::case_from_name(surroundings.catalogue.axes, name, "CASE")
                                 : matrix::case_from_json(surroundings.catalogue.axes,
                                                          matrix::Located(*upstream.document)),
          .machine = {}};
      for (const auto& [variable, value] : stack) own_case.machine.stack[variable] = value;
      for (const auto& [variable, value] : environment)
        matrix::set_value(surroundings.catalogue.axes, own_case.test_case, "env." + variable,
                          value);
      if (options.world_size) own_case.machine.slots = *options.world_size;
      result.value = std::move(own_case);
      return result;
    }
    upstream.dialect = dialect::load_dialect(
        options.dialect.empty() ? dialect_of(*upstream.document) : options.dialect,
        options.version);
    upstream.reading = dialect::read_config_file(upstream.dialect, *upstream.document);
  } else {
    const dialect::Program program = dialect::read_program(words);
    upstream.words = words;
    upstream.first_option = program.first_option;
    dialect::Dialect bridge = dialect::load_dialect("megatron-bridge", options.version);
    const bool harness =
        options.dialect == "megatron-bridge" ||
        (options.dialect.empty() && is_harness(bridge.options, words, program.first_option));
    upstream.dialect =
        harness ? std::move(bridge)
                : dialect::load_dialect(options.dialect.empty() ? "megatron-lm" : options.dialect,
                                        options.version);
    upstream.reading =
        dialect::read_command_line(upstream.dialect, words, program.first_option, harness);
    environment.insert(environment.begin(), program.environment.begin(), program.environment.end());
    if (program.world_size)
      upstream.reading.configuration.set_stack(upstream.dialect.options, "world_size",
                                               std::to_string(*program.world_size));
  }
  dialect::Configuration& configuration = upstream.reading.configuration;
  for (const auto& [name, value] : environment) {
    configuration.values["env." + name] = value;
    if (name == "WORLD_SIZE")
      configuration.set_stack(upstream.dialect.options, "world_size", value);
  }
  for (const auto& [name, value] : stack)
    configuration.set_stack(upstream.dialect.options, name, value);
  if (options.world_size)
    configuration.set_stack(upstream.dialect.options, "world_size",
                            std::to_string(*options.world_size));
  result.value = std::move(upstream);
  return result;
}

}  // namespace graphproof::cli

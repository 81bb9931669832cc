#include "matrix/case/machine.h"

#include <charconv>
#include <utility>

#include "matrix/input/input_error.h"

namespace graphproof::matrix {
namespace {

constexpr std::pair<std::string_view, VariableType> kVariables[] = {
    {"device", VariableType::device},         {"slots", VariableType::integer},
    {"minutes", VariableType::integer},       {"sm", VariableType::integer},
    {"torch_version", VariableType::version}, {"nccl_version", VariableType::version},
    {"cuda_version", VariableType::version},  {"driver", VariableType::version},
    {"te_version", VariableType::version},    {"compute_sanitizer", VariableType::version},
    {"hybrid_ep", VariableType::version},     {"apex", VariableType::version}};

/// Packages that only some cases of a subject need: the variable, the subject, and what its state
/// has ahead of the version, as "torch 2.11.0, megatron-core 0.19.2, hybrid-ep 1.2.1".
struct OptionalPackage {
  std::string_view variable, subject, before;
};
constexpr OptionalPackage kOptionalPackages[] = {{"hybrid_ep", "megatron_core", "hybrid-ep "},
                                                 {"apex", "torch", "apex "}};

/// Its version; "none" if it is not installed, nothing where no subject was asked for.
std::optional<std::string> version_of(const OptionalPackage& package, const nlohmann::json& stack) {
  const nlohmann::json::json_pointer place("/subjects/" + std::string(package.subject) +
                                           "/version");
  if (!stack.contains(place)) return std::nullopt;
  const auto text = stack.at(place).get<std::string>();
  const std::size_t at = text.find(package.before);
  if (at == std::string::npos) return "none";
  const std::string rest = text.substr(at + package.before.size());
  return rest.substr(0, rest.find(','));
}

}  // namespace

std::map<std::string, std::string> stack_variables(const nlohmann::json& stack) {
  std::map<std::string, std::string> variables;
  for (const auto& [name, type] : kVariables) {
    if (name == "device" || name == "slots") continue;
    const auto found = stack.find(std::string(name));
    if (found == stack.end() || found->is_null()) continue;
    variables[std::string(name)] = found->is_string() ? found->get<std::string>() : found->dump();
  }
  for (const OptionalPackage& package : kOptionalPackages)
    if (const auto version = version_of(package, stack))
      variables[std::string(package.variable)] = *version;
  return variables;
}

std::optional<VariableType> variable_type(std::string_view name) {
  for (const auto& [known, type] : kVariables)
    if (known == name) return type;
  return std::nullopt;
}

const std::vector<std::string>& variable_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> result;
    for (const auto& [name, type] : kVariables) result.emplace_back(name);
    return result;
  }();
  return names;
}

Value variable_value(const Machine& machine, std::string_view name) {
  if (name == "device") return machine.device;
  if (name == "slots") return machine.slots;
  const auto found = machine.stack.find(std::string(name));
  if (found == machine.stack.end() || found->second.empty()) return Unknown{};
  const std::string& text = found->second;
  if (text == "none") return Absent{};  // known not to be installed
  const auto wrong = [&](const char* want) {
    return InputError({.what = "the stack variable `" + std::string(name) + "` can't be read",
                       .got = text,
                       .want = want,
                       .why = "",
                       .next = "correct it, or leave it out: then what depends on it is unknown",
                       .place = {}});
  };
  if (variable_type(name) == VariableType::integer) {
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || end != text.data() + text.size()) throw wrong("an integer");
    return number;
  }
  const std::optional<Version> version = parse_version(text);
  if (!version) throw wrong("a version such as 2.11.0");
  return *version;
}

}  // namespace graphproof::matrix

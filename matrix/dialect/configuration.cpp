#include "matrix/dialect/configuration.h"

#include <algorithm>

#include "matrix/input/input_error.h"

namespace graphproof::dialect {

using matrix::Unknown;
using matrix::Value;

Configuration Configuration::defaults(const OptionTable& options, Surface surface) {
  Configuration configuration;
  configuration.surface = surface;
  for (const Option& option : options.options()) {
    const bool as_argument = surface == Surface::command_line && option.where != Where::config;
    if (surface == Surface::harness && option.of_recipe)
      configuration.values[option.name()] = Unknown{};
    else
      configuration.values[option.name()] =
          as_argument ? option.axis.default_value : option.config_default;
  }
  return configuration;
}

Value Configuration::value(const matrix::Input& input) const {
  if (input.machine) return matrix::variable_value(machine, input.name);
  const auto found = values.find(input.name);
  return found == values.end() ? input.default_value : found->second;
}

std::vector<Value> Configuration::values_of(const matrix::Expression& expression) const {
  std::vector<Value> result;
  result.reserve(expression.inputs().size());
  for (const matrix::Input& input : expression.inputs()) result.push_back(value(input));
  return result;
}

void Configuration::set(const OptionTable& options, const std::string& name, Value value) {
  const Option* option = options.find(name);
  const auto* integer = std::get_if<std::int64_t>(&value);
  if (option != nullptr && option->axis.type == matrix::AxisType::number && integer != nullptr)
    value = static_cast<double>(*integer);
  values[name] = std::move(value);
}

void Configuration::set_stack(const OptionTable& options, const std::string& name,
                              const std::string& text) {
  if (matrix::variable_type(name) && name != "device" && name != "slots" && name != "minutes") {
    machine.stack[name] = text;
    static_cast<void>(matrix::variable_value(
        machine, name));  // refuses an unreadable value now, not when a rule reads it
    return;
  }
  std::vector<std::string> known{"torch_version", "nccl_version", "cuda_version",
                                 "driver",        "te_version",   "sm"};
  for (const Option& option : options.options())
    if (option.where == Where::stack) known.push_back(option.name());
  const Option* option = options.find(name);
  if (option == nullptr || option->where != Where::stack)
    throw matrix::InputError({.what = "`" + name + "` is no stack variable",
                              .got = name,
                              .want = "one of " + matrix::listed(known),
                              .why = "",
                              .next = matrix::suggestion(name, known, "use one of them"),
                              .place = {}});
  set(options, name,
      text == "none" ? Value(matrix::Absent{})
                     : matrix::parse_value_text(option->axis, name, text, {.source = "--stack"}));
}

nlohmann::json effective_json(const Configuration& configuration) {
  nlohmann::json effective = nlohmann::json::object();
  for (const auto& [name, value] : configuration.values)
    if (!std::holds_alternative<Unknown>(value)) effective[name] = matrix::value_json(value);
  return effective;
}

}  // namespace graphproof::dialect

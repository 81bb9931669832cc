// A training configuration: the value of each option, and the place where it was written. Rules
// read it and fixes rewrite it.
#pragma once

#include <nlohmann/json.hpp>

#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "matrix/case/machine.h"
#include "matrix/dialect/options.h"
#include "matrix/expression/expression.h"

namespace graphproof::dialect {

/// Whether the options come from a command line, a configuration object or a performance harness.
enum class Surface { command_line, configuration, harness };

/// The options, environment variables and stack variables of a training job.
struct Configuration {
  Surface surface = Surface::configuration;
  /// The value of every option, and of every env.NAME that was given.
  std::map<std::string, matrix::Value, std::less<>> values;
  std::map<std::string, matrix::Place, std::less<>> places;  // of the options that were given
  std::set<std::string, std::less<>> unreadable;  // options whose given value is not accepted
  matrix::Machine machine;  // its stack variables; those that are missing are unknown

  /// All options at their defaults for `surface`. A harness starts from a recipe, whose values are
  /// not known here.
  static Configuration defaults(const OptionTable& options, Surface surface);

  matrix::Value value(const matrix::Input& input) const;
  std::vector<matrix::Value> values_of(const matrix::Expression& expression) const;
  matrix::Truth holds(const matrix::Expression& expression) const {
    return expression.holds(values_of(expression));
  }
  /// Sets an option. An integer becomes a floating-point number if the option is one.
  void set(const OptionTable& options, const std::string& name, matrix::Value value);
  /// Sets a fact about the machine: a stack variable of the expression language, or an option whose
  /// place is `stack`. Throws InputError.
  void set_stack(const OptionTable& options, const std::string& name, const std::string& text);
};

/// The values as JSON. An absent value is null; unknown values are left out.
nlohmann::json effective_json(const Configuration& configuration);

}  // namespace graphproof::dialect

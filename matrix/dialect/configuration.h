// A training configuration: the value of each option, and where it was written. Rules read it and
// fixes rewrite it.
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

/// What was read: a command line's options, a configuration object's, or a performance harness's.
enum class Surface { command_line, configuration, harness };

struct Configuration {
  Surface surface = Surface::configuration;
  std::map<std::string, matrix::Value, std::less<>>
      values;  // every option, and the env.NAME that were given
  std::map<std::string, matrix::Place, std::less<>> places;  // of those that were given
  std::set<std::string, std::less<>> unreadable;  // given, but with no value that can be taken
  matrix::Machine machine;                        // stack variables: what is not there is unknown

  /// All options at their defaults for `surface`. A harness starts from a recipe, whose values are
  /// unknown here.
  static Configuration defaults(const OptionTable& options, Surface surface);

  matrix::Value value(const matrix::Input& input) const;
  std::vector<matrix::Value> values_of(const matrix::Expression& expression) const;
  matrix::Truth holds(const matrix::Expression& expression) const {
    return expression.holds(values_of(expression));
  }
  /// Stores `value` as the option's type; an integer for a float becomes one.
  void set(const OptionTable& options, const std::string& name, matrix::Value value);
  /// Sets a fact of the machine: a stack variable of the expression language, or an option of kind
  /// stack. InputError.
  void set_stack(const OptionTable& options, const std::string& name, const std::string& text);
};

/// Absent is null; unknown options are left out.
nlohmann::json effective_json(const Configuration& configuration);

}  // namespace graphproof::dialect

// The rules of an upstream dialect as data (matrix/rules/DIALECT/*.json): what upstream refuses,
// rewrites, warns of or lets pass although it goes wrong, with the place in its evaluation order.
// check.h applies them.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "matrix/dialect/options.h"
#include "matrix/expression/expression.h"
#include "matrix/input/located_json.h"

namespace graphproof::dialect {

/// When upstream evaluates a rule: its argument parser and argument checks; its configuration
/// objects; building model, optimizer and process groups; training.
enum class Stage { cli, config, construct, run };
std::string_view stage_name(Stage stage);

struct Placement {
  Stage stage = Stage::config;
  double at = 0;  // the line of upstream's file that evaluates it
};

struct Effect {
  std::string option;
  matrix::Expression value = matrix::Expression::always();
};

/// One check of a rule: broken when `when` holds and `require` does not. What a broken part of
/// severity `fact` rewrites is not told: upstream only derives a value.
struct Part {
  std::string severity;
  std::vector<Effect> effects;
  matrix::Expression when = matrix::Expression::always();
  matrix::Expression require = matrix::Expression::always();
  std::string want;
  std::vector<std::pair<std::string, matrix::Expression>>
      placeholders;  // "{expression}" in `want` -> its value
};

/// Option values by name (also env.NAME and stack variables), or a command line.
using Example = std::variant<nlohmann::json, std::string>;

struct Rule {
  std::string id, dialect, section, status, severity, what, why, next, source, option, behind;
  std::string from, before;  // versions of the dialect: from <= v < before; empty is open
  std::vector<Placement> placements;
  matrix::Expression when = matrix::Expression::always();
  std::vector<Part> parts;  // empty: nothing to decide here
  bool read = false;        // the reader of command lines or files decides it
  bool migrates = false;    // it refuses or rewrites an older spelling
  std::vector<std::string>
      decided_by;  // rules that this one restates: their findings are its findings
  std::vector<std::string> covered_by;  // ids of checks, detectors and faults
  std::vector<Example> breaks, holds;

  bool decided() const { return read || !parts.empty() || !decided_by.empty(); }
  /// Whether it is evaluated for `version`; an empty version is the newest.
  bool active(const std::string& version) const;
};

class UpstreamRules {
 public:
  /// Reads the "graphproof-dialect-rules/1" files of one dialect over its options. Throws
  /// InputError.
  static UpstreamRules parse(std::span<const matrix::Document> documents,
                             const OptionTable& options);

  const std::vector<Rule>& rules() const {
    return rules_;
  }  // by id as written, files in the order given
  const Rule* find(std::string_view id) const;
  /// The rules of a stage with conditions, in the order in which upstream evaluates them.
  std::vector<const Rule*> order(Stage stage) const;

 private:
  std::vector<Rule> rules_;
};

}  // namespace graphproof::dialect

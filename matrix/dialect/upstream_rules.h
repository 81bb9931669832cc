// The rules of an upstream dialect as data (matrix/rules/DIALECT/*.json): what upstream refuses,
// rewrites, warns about, or accepts although it goes wrong, and when upstream evaluates it. check.h
// applies them.
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
#include "matrix/dialect/versions.h"
#include "matrix/expression/expression.h"
#include "matrix/input/located_json.h"

namespace graphproof::dialect {

/// When upstream evaluates a rule: in its argument parser and argument checks (cli), in its
/// configuration objects (config), when it builds model, optimizer and process groups (construct),
/// or while it trains (run).
enum class Stage { cli, config, construct, run };
std::string_view stage_name(Stage stage);

/// Where a rule comes in upstream's order of evaluation.
struct Placement {
  Stage stage = Stage::config;
  /// The line of upstream's source that evaluates it; it orders the rules of a stage. What runs
  /// before or after another file may carry a constant less or more.
  double at = 0;
};

/// An option that a rule rewrites, and its new value.
struct Effect {
  std::string option;
  matrix::Expression value = matrix::Expression::always();
};

/// One condition of a rule: it fires if `when` holds and `require` does not. A part of severity
/// `fact` rewrites options without a finding, because upstream only derives a value there.
struct Part {
  std::string severity;
  Versions versions;  // that have it, of those that have the rule
  std::vector<Effect> effects;
  matrix::Expression when = matrix::Expression::always();
  matrix::Expression require = matrix::Expression::always();
  std::string want;
  /// The {expressions} of `want`, each with its parsed form.
  std::vector<std::pair<std::string, matrix::Expression>> placeholders;
};

/// An example of a rule: option values by name (also env.NAME and stack variables), or a command
/// line.
using Example = std::variant<nlohmann::json, std::string>;

/// A rule of upstream.
struct Rule {
  std::string id, dialect, section, status, severity, what, why, next, source, option;
  std::string behind;  // the rule whose error comes first in all of this rule's examples, if any
  Versions versions;   // that have it
  std::vector<Placement> placements;
  matrix::Expression when = matrix::Expression::always();
  std::vector<Part> parts;  // empty if a configuration does not decide it
  bool read = false;        // whether the reader of command lines or files decides it
  bool migrates = false;    // whether it refuses or rewrites an older spelling
  /// The rules that this one restates: their findings are its findings.
  std::vector<std::string> decided_by;
  std::vector<std::string> covered_by;  // ids of checks, detectors, faults and tests
  std::vector<Example> breaks, holds;

  bool decided() const { return read || !parts.empty() || !decided_by.empty(); }
  /// Whether it is evaluated for `version`.
  bool active(const std::string& version) const;
};

/// The rules of a dialect, by id as written, in the order of the files.
class UpstreamRules {
 public:
  /// Reads the "graphproof-dialect-rules/1" files of one dialect, whose rules read its options.
  /// Rules that `version` does not have are kept, without the parts that it does not have. Throws
  /// InputError.
  static UpstreamRules parse(std::span<const matrix::Document> documents,
                             const OptionTable& options, const std::string& version);

  const std::vector<Rule>& rules() const { return rules_; }
  const Rule* find(std::string_view id) const;
  /// The rules of a stage that have conditions, in the order in which upstream evaluates them.
  std::vector<const Rule*> order(Stage stage) const;

 private:
  std::vector<Rule> rules_;
};

}  // namespace graphproof::dialect

#include "matrix/dialect/check.h"

#include <algorithm>
#include <set>

namespace graphproof::dialect {
namespace {

using matrix::Expression;
using matrix::Truth;
using matrix::Unknown;
using matrix::Value;

std::string filled(const Part& part, const Configuration& configuration) {
  std::string text = part.want;
  for (const auto& [placeholder, expression] : part.placeholders)
    text.replace(text.find(placeholder), placeholder.size(),
                 matrix::value_text(expression.evaluate(configuration.values_of(expression))));
  return text;
}

std::string spelled(const Value& value) {
  return std::holds_alternative<matrix::Absent>(value) ? "None" : matrix::value_text(value);
}

// The inputs that the conditions read, in order of first use: "cuda_graph_impl=full_iteration,
// fp16=true".
std::string values_read(std::initializer_list<const Expression*> expressions,
                        const Configuration& configuration) {
  std::set<std::string> seen;
  std::string text;
  for (const Expression* expression : expressions)
    for (const matrix::Input& input : expression->inputs())
      if (seen.insert(input.name).second)
        text += (text.empty() ? "" : ", ") + input.name + "=" + spelled(configuration.value(input));
  return text;
}

// The option that a finding points at: one that was written, and preferably one that the rule
// requires something of rather than one that makes it apply.
std::string option_of(std::initializer_list<const Expression*> expressions,
                      const Configuration& configuration) {
  std::string any;
  for (const Expression* expression : expressions)
    for (const matrix::Input& input : expression->inputs()) {
      if (configuration.places.count(input.name) != 0) return input.name;
      if (any.empty()) any = input.name;
    }
  return any;
}

bool reads_unreadable(std::initializer_list<const Expression*> expressions,
                      const Configuration& configuration) {
  for (const Expression* expression : expressions)
    for (const matrix::Input& input : expression->inputs())
      if (configuration.unreadable.count(input.name) != 0) return true;
  return false;
}

// Whether the rule reads an option that was written. What a recipe combines by itself is not
// judged.
bool concerns_input(const Rule& rule, const Configuration& configuration) {
  const auto reads_given = [&](const Expression& expression) {
    return std::any_of(
        expression.inputs().begin(), expression.inputs().end(),
        [&](const matrix::Input& input) { return configuration.places.count(input.name) != 0; });
  };
  return reads_given(rule.when) ||
         std::any_of(rule.parts.begin(), rule.parts.end(), [&](const Part& part) {
           return reads_given(part.when) || reads_given(part.require);
         });
}

// A field that a harness's flag sets has the place of the flag.
void copy_place_to_fields(const Part& part, Configuration& configuration) {
  for (const Effect& effect : part.effects)
    for (const Expression* expression : {&effect.value, &part.when})
      for (const matrix::Input& input : expression->inputs())
        if (const auto place = configuration.places.find(input.name);
            place != configuration.places.end())
          configuration.places.emplace(effect.option, place->second);
}

// The new values of a part that fired are computed before any of them is stored.
void rewrite(const Part& part, bool unknown, const Dialect& dialect, Configuration& configuration) {
  if (configuration.surface == Surface::harness) copy_place_to_fields(part, configuration);
  std::vector<std::pair<std::string, Value>> values;
  for (const Effect& effect : part.effects) {
    Value value = effect.value.evaluate(configuration.values_of(effect.value));
    const auto current = configuration.values.find(effect.option);
    if (unknown && (current == configuration.values.end() || !(current->second == value)))
      value = Unknown{};
    values.emplace_back(effect.option, std::move(value));
  }
  for (auto& [name, value] : values) configuration.set(dialect.options, name, std::move(value));
}

// Which of two findings of one rule is reported: an error first, then a decided one.
int weight(const Finding& finding) {
  return (finding.severity == "error" ? 2 : 0) + (finding.unknown ? 0 : 3);
}

// The order in which upstream meets findings: by stage, then by its line of source. The reader
// meets an unreadable value before any rule, upstream's configuration object only where it looks at
// it.
void sort_as_upstream(const Dialect& dialect, std::vector<Finding>& findings) {
  const auto place = [&](const Finding& finding) {
    for (const Placement& placement : dialect.rule(finding.rule).placements)
      if (placement.stage == finding.stage) return std::pair(finding.stage, placement.at);
    return std::pair(finding.stage, 0.0);
  };
  std::stable_sort(
      findings.begin(), findings.end(),
      [&](const Finding& left, const Finding& right) { return place(left) < place(right); });
}

std::vector<Stage> stages(Surface surface) {
  if (surface == Surface::configuration) return {Stage::config, Stage::construct, Stage::run};
  return {Stage::cli, Stage::config, Stage::construct, Stage::run};
}

}  // namespace

nlohmann::json Verdict::json() const {
  nlohmann::json list = nlohmann::json::array();
  for (const Finding& finding : findings) list.push_back(finding.json());
  nlohmann::json undecided = nlohmann::json::array();
  for (const Finding& finding : findings)
    if (finding.severity == "error" && finding.unknown) undecided.push_back(finding.rule);
  return {{"accepted", accepted},
          {"undecided", undecided},
          {"findings", list},
          {"effective", effective_json(effective)}};
}

Applied apply(const Rule& rule, Stage stage, const Configuration& configuration) {
  Applied applied;
  const Truth applies = configuration.holds(rule.when);
  if (applies == Truth::no) return applied;
  for (const Part& part : rule.parts) {
    const Truth part_applies = configuration.holds(part.when);
    if (part_applies == Truth::no) continue;
    const Truth holds = configuration.holds(part.require);
    if (holds == Truth::yes) continue;
    const bool unknown =
        applies == Truth::unknown || part_applies == Truth::unknown || holds == Truth::unknown;
    applied.fired.emplace_back(&part, unknown);
    if (part.severity == "fact" ||
        (unknown && reads_unreadable({&rule.when, &part.when, &part.require}, configuration)))
      continue;
    Finding finding =
        finding_of(rule, stage, values_read({&rule.when, &part.when, &part.require}, configuration),
                   filled(part, configuration));
    finding.severity = part.severity;
    finding.unknown = unknown;
    if (finding.option.empty())
      finding.option = option_of({&part.require, &part.when, &rule.when}, configuration);
    for (const std::string& option :
         {finding.option, option_of({&part.require, &part.when, &rule.when}, configuration)})
      if (const auto place = configuration.places.find(option);
          finding.place.line == 0 && place != configuration.places.end())
        finding.place = place->second;
    if (!applied.finding || weight(*applied.finding) < weight(finding))
      applied.finding = std::move(finding);
  }
  return applied;
}

namespace {

Verdict check_rules(const Dialect& dialect, Reading reading, bool spelling_only) {
  Verdict verdict{.findings = std::move(reading.findings),
                  .effective = std::move(reading.configuration)};
  std::set<std::string> reported;  // a rule of two stages is reported once
  for (const Finding& finding : verdict.findings) reported.insert(finding.rule);
  for (const Stage stage : stages(verdict.effective.surface)) {
    for (const Rule* rule : dialect.rules.order(stage)) {
      if (!rule->active(dialect.version) || (spelling_only && !rule->migrates)) continue;
      // A performance harness has its own parser: Megatron-LM's parser never sees its arguments.
      if (stage == Stage::cli && verdict.effective.surface == Surface::harness &&
          rule->dialect != "megatron-bridge")
        continue;
      Applied applied = apply(*rule, stage, verdict.effective);
      const bool told_if_undecided =
          verdict.effective.surface != Surface::harness || concerns_input(*rule, verdict.effective);
      // A value that changes back and forth while training runs is reported, but is no
      // configuration.
      if (stage != Stage::run)
        for (const auto& [part, unknown] : applied.fired)
          rewrite(*part, unknown, dialect, verdict.effective);
      if (applied.finding && applied.finding->unknown && !told_if_undecided) continue;
      if (applied.finding && reported.insert(rule->id).second)
        verdict.findings.push_back(std::move(*applied.finding));
    }
  }
  sort_as_upstream(dialect, verdict.findings);
  const auto first = std::find_if(verdict.findings.begin(), verdict.findings.end(),
                                  [](const Finding& finding) { return finding.refuses(); });
  verdict.accepted = first == verdict.findings.end();
  if (!verdict.accepted) first->first = true;
  return verdict;
}

}  // namespace

Verdict check(const Dialect& dialect, Reading reading) {
  return check_rules(dialect, std::move(reading), false);
}
Verdict check_spelling(const Dialect& dialect, Reading reading) {
  return check_rules(dialect, std::move(reading), true);
}

}  // namespace graphproof::dialect

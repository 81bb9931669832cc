#include "matrix/dialect/upstream_rules.h"

#include <algorithm>

namespace graphproof::dialect {
namespace {

using matrix::Expression;
using matrix::Located;
using matrix::Origin;

constexpr std::pair<std::string_view, Stage> kStages[] = {{"cli", Stage::cli},
                                                          {"config", Stage::config},
                                                          {"construct", Stage::construct},
                                                          {"run", Stage::run}};

Stage read_stage(const Located& word) {
  const std::string text = word.word({"cli", "config", "construct", "run"});
  for (const auto& [name, stage] : kStages)
    if (text == name) return stage;
  return Stage::run;
}

std::vector<Located> one_or_several(const Located& value) {
  return value.json().is_array() ? value.items() : std::vector<Located>{value};
}

std::vector<Placement> read_placements(const Located& row) {
  std::vector<Placement> placements;
  for (const Located& stage : one_or_several(row.at("stage")))
    placements.push_back({read_stage(stage), 0});
  std::vector<Located> at;
  if (row.has("at")) at = one_or_several(row.at("at"));
  const bool ordered = std::any_of(placements.begin(), placements.end(), [](const Placement& p) {
    return p.stage == Stage::cli || p.stage == Stage::config;
  });
  const bool decides = row.has("when") || row.has("require") || row.has("parts") || row.has("read");
  if (at.size() != placements.size() && ((ordered && decides) || !at.empty()))
    row.fail("`at` and `stage` do not match", "one place in upstream's order for each stage",
             "the first error that upstream meets depends on it",
             "give the line that evaluates it for each stage");
  for (std::size_t i = 0; i < at.size(); ++i) placements[i].at = at[i].number(-1e6, 1e6);
  return placements;
}

// Finds the {expressions} of a text such as "heads {heads} over tp {tp}".
void read_want(Part& part, const Located& want, const matrix::Scope& scope) {
  part.want = want.string();
  for (std::size_t open = part.want.find('{'); open != std::string::npos;
       open = part.want.find('{', open + 1)) {
    const std::size_t close = part.want.find('}', open);
    if (close == std::string::npos)
      want.fail("an unterminated placeholder", "{expression}", "", "close it with }");
    const std::string inside = part.want.substr(open + 1, close - open - 1);
    part.placeholders.emplace_back(
        "{" + inside + "}",
        Expression::any(inside, scope,
                        Origin::option("placeholder of " + want.place().source, inside)));
  }
}

Part read_part(const Located& row, const matrix::Scope& scope, const std::string& severity,
               bool of_several) {
  Part part;
  part.severity = of_several && row.has("severity")
                      ? row.at("severity").word({"error", "warning", "fix", "hazard", "fact"})
                      : severity;
  if (of_several && row.has("versions")) part.versions = read_versions(row.at("versions"));
  if (row.has("effect"))
    for (const auto& [option, value] : row.at("effect").members())
      part.effects.push_back(
          {option, Expression::value_of(value.string(), scope, value.origin(), option)});
  if (of_several && row.has("when"))
    part.when = Expression::condition(row.at("when").string(), scope, row.at("when").origin());
  part.require =
      row.has("require")
          ? Expression::condition(row.at("require").string(), scope, row.at("require").origin())
          : Expression::condition("false", scope, Origin::option("require", "false"));
  if (row.has("want"))
    read_want(part, row.at("want"), scope);
  else
    part.want = row.has("require") ? part.require.text() : "";
  return part;
}

std::vector<Example> read_examples(const Located& list) {
  std::vector<Example> examples;
  for (const Located& example : list.items()) {
    if (example.json().is_string())
      examples.emplace_back(example.string());
    else if (example.json().is_object())
      examples.emplace_back(nlohmann::json::parse(example.json().dump()));
    else
      example.fail("an example that is neither options nor a command line", "an object or a text",
                   "", "write {\"option\": value}");
  }
  return examples;
}

void require_fields(const Rule& rule, const Located& row) {
  const bool needs_examples = rule.decided() && rule.status != "dead" && rule.severity != "fact";
  if (needs_examples && (rule.breaks.empty() || rule.holds.empty()))
    row.fail("`" + rule.id + "` has no example that breaks it, or none that holds",
             "at least one of each",
             "without an example that breaks it, the rule may be one that can't be broken",
             "add `examples`");
  if (!rule.decided() && rule.severity != "fact" && !row.has("covered_by"))
    row.fail("`" + rule.id + "` can be decided nowhere", "conditions, or `covered_by`", "",
             "name the checks or faults that show it, or []");
  for (const auto& [key, field] : {std::pair<const char*, const std::string*>{"what", &rule.what},
                                   {"why", &rule.why},
                                   {"next", &rule.next},
                                   {"source", &rule.source}})
    if (field->empty())
      row.at(key).fail("an empty `" + std::string(key) + "`", "a sentence",
                       "a finding without it does not help the user", "write it");
}

Rule read_rule(const Located& row, const matrix::Scope& scope, const std::string& version) {
  row.expect_keys({"id", "stage", "status", "severity", "what", "why", "next", "source"},
                  {"at", "versions", "when", "require", "parts", "want", "read", "effect", "option",
                   "decided_by", "covered_by", "examples", "behind", "migrates"});
  Rule rule;
  rule.id = row.at("id").string();
  rule.placements = read_placements(row);
  rule.status = row.at("status").word({"live", "dead", "removed", "probe"});
  rule.severity = row.at("severity").word({"error", "warning", "fix", "hazard", "fact"});
  rule.what = row.at("what").string();
  rule.why = row.at("why").string();
  rule.next = row.at("next").string();
  rule.source = row.at("source").string();
  rule.option = row.string_or("option", "");
  if (!rule.option.empty()) scope.axes->at(rule.option, row.at("option").place());
  rule.behind = row.string_or("behind", "");
  if (row.has("versions")) rule.versions = read_versions(row.at("versions"));
  if (row.has("read")) rule.read = row.at("read").boolean();
  if (row.has("migrates")) rule.migrates = row.at("migrates").boolean();
  if (row.has("when"))
    rule.when = Expression::condition(row.at("when").string(), scope, row.at("when").origin());
  if (row.has("parts") && (row.has("require") || row.has("effect")))
    row.fail("`parts` together with `require` or `effect`", "one of them", "",
             "move them into the parts");
  if (row.has("parts")) {
    for (const Located& part : row.at("parts").items()) {
      part.expect_keys({}, {"versions", "when", "require", "want", "severity", "effect"});
      Part read = read_part(part, scope, rule.severity, true);
      if (read.versions.include(version)) rule.parts.push_back(std::move(read));
    }
  } else if (row.has("when") || row.has("require")) {
    rule.parts.push_back(read_part(row, scope, rule.severity, false));
  }
  if (row.has("decided_by")) {
    if (row.has("when") || row.has("require") || row.has("parts"))
      row.fail("`decided_by` together with conditions", "one of them",
               "the finding would be reported twice", "remove one");
    for (const Located& id : row.at("decided_by").items()) rule.decided_by.push_back(id.string());
  }
  if (row.has("covered_by"))
    for (const Located& id : row.at("covered_by").items()) rule.covered_by.push_back(id.string());
  if (row.has("examples")) {
    const Located examples = row.at("examples");
    examples.expect_keys({"breaks", "holds"}, {});
    rule.breaks = read_examples(examples.at("breaks"));
    rule.holds = read_examples(examples.at("holds"));
  }
  require_fields(rule, row);
  return rule;
}

}  // namespace

std::string_view stage_name(Stage stage) {
  for (const auto& [name, value] : kStages)
    if (value == stage) return name;
  return "";
}

bool Rule::active(const std::string& version) const {
  const bool ended = !versions.before.empty() || !versions.only.empty();
  return decided() && status != "dead" && (status != "removed" || ended) &&
         versions.include(version);
}

UpstreamRules UpstreamRules::parse(std::span<const matrix::Document> documents,
                                   const OptionTable& options, const std::string& version) {
  UpstreamRules set;
  matrix::Scope scope{.axes = &options.names(), .defines = {}};
  for (const matrix::Document& document : documents) {
    const Located root(document);
    root.expect_keys({"schema", "dialect", "rules"}, {"define"});
    root.at("schema").word({"graphproof-dialect-rules/1"});
    if (root.has("define"))
      for (const auto& [name, text] : root.at("define").members()) {
        if (scope.defines.count(name) != 0)
          text.fail("the define `" + name + "` appears twice",
                    "each name once in all files of a dialect", "", "rename one");
        matrix::add_define(scope, name, text.string(), text.origin());
      }
  }
  for (const matrix::Document& document : documents) {
    const Located root(document);
    for (const Located& row : root.at("rules").items()) {
      Rule rule = read_rule(row, scope, version);
      rule.dialect = root.at("dialect").word({"megatron-lm", "megatron-bridge", "pytorch"});
      rule.section = document.source;
      if (set.find(rule.id) != nullptr)
        row.at("id").fail("the rule `" + rule.id + "` appears twice", "each rule once", "",
                          "remove one of them");
      set.rules_.push_back(std::move(rule));
    }
  }
  for (const matrix::Document& document : documents)
    for (const Located& row : Located(document).at("rules").items())
      for (const Located& id :
           row.has("decided_by") ? row.at("decided_by").items() : std::vector<Located>())
        if (set.find(id.string()) == nullptr)
          id.fail("no rule `" + id.string() + "`", "the id of a rule of this dialect", "",
                  "correct it");
  return set;
}

const Rule* UpstreamRules::find(std::string_view id) const {
  const auto found =
      std::find_if(rules_.begin(), rules_.end(), [&](const Rule& rule) { return rule.id == id; });
  return found == rules_.end() ? nullptr : &*found;
}

std::vector<const Rule*> UpstreamRules::order(Stage stage) const {
  std::vector<std::pair<double, const Rule*>> placed;
  for (const Rule& rule : rules_)
    for (const Placement& placement : rule.placements)
      if (placement.stage == stage && !rule.parts.empty()) placed.emplace_back(placement.at, &rule);
  std::stable_sort(placed.begin(), placed.end(),
                   [](const auto& left, const auto& right) { return left.first < right.first; });
  std::vector<const Rule*> order;
  for (const auto& [at, rule] : placed) order.push_back(rule);
  return order;
}

}  // namespace graphproof::dialect

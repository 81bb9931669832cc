#include "matrix/catalogue/rules.h"

#include <algorithm>

#include "matrix/expression/syntax.h"

namespace graphproof::matrix {
namespace {

// Finds the {expressions} of a text such as "heads {heads} over tp {tp}".
void read_placeholders(RulePart& part, const Located& want, const Scope& scope) {
  const std::string text = want.string();
  for (std::size_t open = text.find('{'); open != std::string::npos;
       open = text.find('{', open + 1)) {
    const std::size_t close = text.find('}', open);
    if (close == std::string::npos)
      want.fail("an unterminated placeholder", "{expression}", "", "close it with }");
    const std::string inside = text.substr(open + 1, close - open - 1);
    part.placeholders.emplace_back(
        "{" + inside + "}",
        Expression::any(inside, scope,
                        Origin::option("placeholder of " + want.place().source, inside)));
  }
  part.want = text;
}

std::string filled(const RulePart& part, const Case& test_case, const Machine& machine) {
  std::string text = part.want;
  for (const auto& [placeholder, expression] : part.placeholders)
    text.replace(text.find(placeholder), placeholder.size(),
                 value_text(expression.evaluate(test_case, machine)));
  return text;
}

// The inputs that the conditions read, in order of first use: "impl=full_iteration,
// nan_check_loss=true".
std::string values_read(std::initializer_list<const Expression*> expressions, const Case& test_case,
                        const Machine& machine) {
  std::vector<std::string> seen;
  std::string text;
  for (const Expression* expression : expressions) {
    const std::vector<Value> values = input_values(expression->inputs(), test_case, machine);
    for (std::size_t i = 0; i < values.size(); ++i) {
      const std::string& name = expression->inputs()[i].name;
      if (std::find(seen.begin(), seen.end(), name) != seen.end()) continue;
      seen.push_back(name);
      text += (text.empty() ? "" : ", ") + name + "=" + value_text(values[i]);
    }
  }
  return text;
}

RulePart read_part(const Located& row, const Scope& scope) {
  RulePart part;
  if (row.has("when"))
    part.when = Expression::condition(row.at("when").string(), scope, row.at("when").origin());
  part.require =
      Expression::condition(row.at("require").string(), scope, row.at("require").origin());
  if (row.has("want"))
    read_placeholders(part, row.at("want"), scope);
  else
    part.want = part.require.text();
  return part;
}

}  // namespace

bool Rule::binds(std::string_view subject) const {
  return subjects.empty() || std::find(subjects.begin(), subjects.end(), subject) != subjects.end();
}

nlohmann::json Finding::json() const {
  return {{"rule", rule}, {"stage", stage}, {"severity", severity},
          {"what", what}, {"got", got},     {"want", want},
          {"why", why},   {"next", next},   {"unknown", unknown}};
}

RuleSet RuleSet::parse(const Document& document, const AxisTable& axes) {
  RuleSet set;
  Scope scope{.axes = &axes, .defines = {}};
  const Located root(document);
  root.expect_keys({"schema", "dialect", "rules"}, {"define"});
  root.at("schema").word({"graphproof-rules/1"});
  const std::string dialect =
      root.at("dialect").word({"graphproof", "megatron-lm", "megatron-bridge", "legacy"});
  if (root.has("define"))
    for (const auto& [name, text] : root.at("define").members())
      add_define(scope, name, text.string(), text.origin());
  for (const Located& row : root.at("rules").items()) {
    row.expect_keys({"id", "stage", "status", "severity", "what", "why", "next", "source"},
                    {"versions", "when", "require", "want", "parts", "breaks", "says"});
    Rule rule;
    rule.id = row.at("id").string();
    rule.dialect = dialect;
    if (set.find(rule.id) != nullptr)
      row.at("id").fail("the rule `" + rule.id + "` appears twice", "each rule once", "",
                        "remove one of them");
    rule.stage = row.at("stage").word({"cli", "config", "construct", "run"});
    rule.status = row.at("status").word({"live", "dead", "removed", "probe"});
    rule.severity = row.at("severity").word({"error", "warning", "fix", "hazard"});
    for (const auto& [key, field] : {std::pair<const char*, std::string*>{"what", &rule.what},
                                     {"why", &rule.why},
                                     {"next", &rule.next},
                                     {"source", &rule.source}}) {
      *field = row.at(key).string();
      if (field->empty())
        row.at(key).fail("an empty `" + std::string(key) + "`", "a sentence",
                         "a refusal without it does not help the user", "write it");
    }
    rule.says = row.string_or("says", "");
    if (row.has("versions")) {
      const Located versions = row.at("versions");
      versions.expect_keys({}, {"from", "before"});
      for (const auto& [key, field] :
           {std::pair<const char*, std::string*>{"from", &rule.from}, {"before", &rule.before}}) {
        if (!versions.has(key)) continue;
        *field = versions.at(key).string();
        if (!parse_version(*field))
          versions.at(key).fail("a version that can't be read", "digits and dots", "",
                                "write it as 0.14.0");
      }
    }
    if (row.has("when"))
      rule.when = Expression::condition(row.at("when").string(), scope, row.at("when").origin());
    if (row.has("require") == row.has("parts"))
      row.fail("a rule needs either `require` or `parts`", "one of them", "", "add or remove one");
    if (row.has("parts")) {
      for (const Located& part : row.at("parts").items()) {
        part.expect_keys({"require", "want"}, {"when"});
        rule.parts.push_back(read_part(part, scope));
      }
    } else {
      RulePart part;
      part.require =
          Expression::condition(row.at("require").string(), scope, row.at("require").origin());
      if (row.has("want"))
        read_placeholders(part, row.at("want"), scope);
      else
        part.want = part.require.text();
      rule.parts.push_back(std::move(part));
    }
    if (row.has("breaks"))
      for (const Located& example : row.at("breaks").items())
        rule.breaks.push_back(case_from_json(axes, example));
    set.rules_.push_back(std::move(rule));
  }
  return set;
}

RuleSet RuleSet::parse(const Document& document, const AxisTable& axes,
                       const SubjectTable& subjects) {
  RuleSet set = parse(document, axes);
  const std::vector<Located> rows = Located(document).at("rules").items();
  for (std::size_t i = 0; i < rows.size(); ++i) {
    Rule& rule = set.rules_[i];
    rule.subjects = subjects.bound_by(rule.source);
    if (rule.subjects.empty())
      rows[i].at("source").fail("the source of rule " + rule.id + " is the code of no subject",
                                "a beginning that `implements` of a subject lists",
                                "a rule that binds no subject is never applied",
                                "correct the source, or add it to matrix/tables/subjects.json");
  }
  return set;
}

const Rule* RuleSet::find(std::string_view id) const {
  const auto found =
      std::find_if(rules_.begin(), rules_.end(), [&](const Rule& rule) { return rule.id == id; });
  return found == rules_.end() ? nullptr : &*found;
}

std::optional<Finding> RuleSet::check(const Rule& rule, const Case& test_case,
                                      const Machine& machine) const {
  if (!rule.binds(subject_of(test_case))) return std::nullopt;
  const Truth applies = rule.when.holds(test_case, machine);
  if (applies == Truth::no) return std::nullopt;
  std::optional<Finding> undecided;
  for (const RulePart& part : rule.parts) {
    const Truth part_applies = part.when.holds(test_case, machine);
    if (part_applies == Truth::no) continue;
    const Truth holds = part.require.holds(test_case, machine);
    if (holds == Truth::yes) continue;
    Finding finding{.rule = rule.id,
                    .stage = rule.stage,
                    .severity = rule.severity,
                    .what = rule.what,
                    .got = values_read({&rule.when, &part.when, &part.require}, test_case, machine),
                    .want = filled(part, test_case, machine),
                    .why = rule.why,
                    .next = rule.next};
    finding.unknown =
        applies == Truth::unknown || part_applies == Truth::unknown || holds == Truth::unknown;
    if (!finding.unknown) return finding;
    if (!undecided) undecided = std::move(finding);
  }
  return undecided;
}

std::vector<Finding> RuleSet::evaluate(const Case& test_case, const Machine& machine) const {
  std::vector<Finding> findings;
  for (const Rule& rule : rules_) {
    if (rule.status != "live") continue;
    if (auto finding = check(rule, test_case, machine)) findings.push_back(std::move(*finding));
  }
  return findings;
}

std::optional<Finding> RuleSet::refusal(const Case& test_case, const Machine& machine) const {
  for (const Rule& rule : rules_) {
    if (rule.status != "live" || rule.severity != "error") continue;
    if (auto finding = check(rule, test_case, machine); finding && !finding->unknown)
      return finding;
  }
  return std::nullopt;
}

}  // namespace graphproof::matrix

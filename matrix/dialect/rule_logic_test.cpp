// The shipped upstream rules as propositions: in each dialect, version and stage no two live rules
// contradict each other, and every rule can be broken.
#include "matrix/testing/rule_logic.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "matrix/dialect/dialect.h"

namespace graphproof::dialect {
namespace {

struct Version {
  const char* dialect;
  const char* version;
};
constexpr Version kVersions[] = {{"megatron-lm", ""},
                                 {"megatron-lm", "0.19.2"},
                                 {"legacy", ""},
                                 {"megatron-bridge", ""},
                                 {"pytorch", ""}};

// Pairs of rules that contradict each other upstream, with the reason. A pair that no longer does
// must be removed from this list.
struct Known {
  const char* one;
  const char* other;
  const char* why;
};
const std::vector<Known> kKnown = {};

std::vector<matrix::LogicRule> logic_rules(const std::vector<const Rule*>& rules,
                                           bool errors_only) {
  std::vector<matrix::LogicRule> result;
  for (const Rule* rule : rules) {
    matrix::LogicRule one{.id = rule->id, .when = rule->when, .parts = {}};
    for (const Part& part : rule->parts)
      if (part.severity == "error" || !errors_only) one.parts.push_back({part.when, part.require});
    result.push_back(std::move(one));
  }
  return result;
}

std::vector<const Rule*> rules_of(const Dialect& dialect, Stage stage, bool errors_only) {
  std::vector<const Rule*> result;
  for (const Rule* rule : dialect.rules.order(stage)) {
    const bool decides = std::any_of(rule->parts.begin(), rule->parts.end(), [&](const Part& part) {
      return part.severity == "error" || (!errors_only && part.severity != "fact");
    });
    if (decides && rule->active(dialect.version) &&
        (rule->status == "live" || (!errors_only && rule->status == "probe")))
      result.push_back(rule);
  }
  return result;
}

TEST(RuleLogic, EveryLiveOrProbedRuleCanBeBroken) {
  for (const Version& version : kVersions) {
    const Dialect dialect = load_dialect(version.dialect, version.version);
    for (const Stage stage : {Stage::cli, Stage::config, Stage::construct, Stage::run}) {
      const std::vector<const Rule*> rules = rules_of(dialect, stage, false);
      matrix::RuleLogic logic(logic_rules(rules, false), dialect.options.names());
      for (std::size_t i = 0; i < rules.size(); ++i)
        EXPECT_TRUE(logic.can_fire(i)) << version.dialect << " " << stage_name(stage) << ": "
                                       << rules[i]->id << " can never fire";
    }
  }
}

TEST(RuleLogic, NoTwoLiveErrorsOfAStageContradict) {
  std::set<std::pair<std::string, std::string>> met;
  for (const Version& version : kVersions) {
    const Dialect dialect = load_dialect(version.dialect, version.version);
    for (const Stage stage : {Stage::cli, Stage::config, Stage::construct, Stage::run}) {
      const std::vector<const Rule*> rules = rules_of(dialect, stage, true);
      matrix::RuleLogic logic(logic_rules(rules, true), dialect.options.names());
      for (std::size_t i = 0; i < rules.size(); ++i)
        for (std::size_t j = 0; j < i; ++j)
          if (logic.contradict(i, j)) {
            const bool known = std::any_of(kKnown.begin(), kKnown.end(), [&](const Known& one) {
              return rules[j]->id == one.one && rules[i]->id == one.other;
            });
            EXPECT_TRUE(known) << version.dialect << " " << stage_name(stage) << ": "
                               << rules[j]->id << " and " << rules[i]->id
                               << " can't both be satisfied";
            met.emplace(rules[j]->id, rules[i]->id);
          }
    }
  }
  for (const Known& one : kKnown)
    EXPECT_TRUE(met.count({one.one, one.other}))
        << one.one << " and " << one.other << " no longer contradict: " << one.why;
}

// A rule whose examples all meet another error first names that error (`behind`); the solver knows
// whether the rule is ever the first.
/// The errors of the dialect's parser and configuration that no configuration meets first and that
/// do not name the errors that come before them. Each has the list of those errors.
std::map<std::string, std::string> hidden(const std::string& name) {
  const Dialect dialect = load_dialect(name, "");
  std::map<std::string, std::string> found;
  for (const Stage stage : {Stage::cli, Stage::config}) {
    const std::vector<const Rule*> rules = rules_of(dialect, stage, true);
    matrix::RuleLogic logic(logic_rules(rules, true), dialect.options.names());
    std::vector<std::size_t> earlier;
    for (std::size_t i = 0; i < rules.size(); earlier.push_back(i++)) {
      if (logic.can_fire_before(i, earlier) || !rules[i]->behind.empty()) continue;
      for (const std::size_t one : logic.hiders(i, earlier))
        found[rules[i]->id] += " " + rules[one]->id;
    }
  }
  return found;
}

TEST(RuleLogic, AnErrorThatIsNeverFirstIsMarkedSo) {
  EXPECT_EQ(hidden("megatron-lm"), (std::map<std::string, std::string>()));
  // R088 refuses local graphs with the expert layer, or with nothing to offload. Under Bridge, B02
  // leaves local graphs no module and R120 refuses the rest. The field belongs to the core, where
  // R088 can come first.
  EXPECT_EQ(hidden("megatron-bridge"),
            (std::map<std::string, std::string>{{"R088", " B02 R120 R014 R021 R032 R071 R086"}}));
}

TEST(RuleLogic, DeadAndRemovedRulesHaveAReason) {
  int listed = 0;
  const Dialect dialect = load_dialect("megatron-bridge", "");
  for (const Rule& rule : dialect.rules.rules()) {
    if (rule.status != "dead" && rule.status != "removed") continue;
    ++listed;
    EXPECT_FALSE(rule.why.empty()) << rule.id;
  }
  EXPECT_GT(listed, 3);
}

// The shipped rules, and one that requires the opposite of R033.
TEST(RuleLogic, APlantedContradictionAmongTheShippedRulesIsFound) {
  const Dialect dialect = load_dialect("megatron-lm", "");
  std::vector<const Rule*> rules = rules_of(dialect, Stage::cli, true);
  std::vector<matrix::LogicRule> logic_list = logic_rules(rules, true);
  const matrix::Scope scope{.axes = &dialect.options.names(), .defines = {}};
  const auto condition = [&](const char* text) {
    return matrix::Expression::condition(text, scope, matrix::Origin::option("planted", text));
  };
  logic_list.push_back({.id = "planted",
                        .when = condition("cuda_graph_impl == full_iteration and fp16"),
                        .parts = {{.require = condition("len(cuda_graph_modules) > 0")}}});
  matrix::RuleLogic logic(logic_list, dialect.options.names());
  std::vector<std::string> found;
  for (std::size_t i = 0; i + 1 < logic_list.size(); ++i)
    if (logic.contradict(i, logic_list.size() - 1)) found.push_back(logic_list[i].id);
  EXPECT_EQ(found, std::vector<std::string>{"R033"});
}

}  // namespace
}  // namespace graphproof::dialect

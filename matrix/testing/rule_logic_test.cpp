#include "matrix/testing/rule_logic.h"

#include <gtest/gtest.h>

#include "matrix/catalogue/catalogue.h"
#include "matrix/testing/loaded_catalogue.h"

namespace graphproof::matrix {
namespace {

LogicRule rule(const std::string& id, const std::string& when, const std::string& require) {
  const Scope scope{.axes = &catalogue().axes, .defines = {}};
  const auto condition = [&](const std::string& text) {
    return Expression::condition(text, scope, Origin::option(id, text));
  };
  return {.id = id,
          .when = condition(when),
          .parts = {{.when = Expression::always(), .require = condition(require)}}};
}

TEST(RuleLogicTest, TwoRulesThatAskForTheOppositeContradict) {
  RuleLogic logic(
      {rule("A", "impl == full_iteration", "not nan_check_loss"),
       rule("B", "impl == full_iteration and optimizer == adam", "nan_check_loss"),
       rule("C", "impl == local", "nan_check_loss"), rule("D", "impl == full_iteration", "tp <= 4"),
       rule("E", "impl == full_iteration and dp > 2", "tp > 4")},
      catalogue().axes);
  EXPECT_TRUE(logic.contradict(0, 1));
  EXPECT_FALSE(logic.contradict(0, 2)) << "they never meet";
  EXPECT_FALSE(logic.contradict(1, 2));
  EXPECT_TRUE(logic.contradict(3, 4));
  EXPECT_FALSE(logic.contradict(0, 3)) << "both can be satisfied";
}

TEST(RuleLogicTest, FeaturesThatExcludeEachOtherAreNoContradiction) {
  // One rule requires the check, another one forbids it under full_iteration: then not both
  // features.
  RuleLogic logic({rule("A", "impl == full_iteration", "not nan_check_loss"),
                   rule("B", "optimizer == adam", "nan_check_loss")},
                  catalogue().axes);
  EXPECT_FALSE(logic.contradict(0, 1));
}

TEST(RuleLogicTest, ARuleThatForbidsAllThatItAppliesToIsNoContradiction) {
  RuleLogic logic({rule("A", "impl == full_iteration", "false"),
                   rule("B", "impl == full_iteration", "tp == 1")},
                  catalogue().axes);
  EXPECT_FALSE(logic.contradict(0, 1));
}

TEST(RuleLogicTest, ARuleThatNoValueBreaksNeverFires) {
  RuleLogic logic({rule("A", "impl == local and impl == full_iteration", "tp == 1"),
                   rule("B", "true", "tp >= 1"), rule("C", "true", "len(modules) <= 1"),
                   rule("D", "torch_version < 2.9.0 and torch_version >= 2.9.0", "false"),
                   rule("E", "sm < 90", "nccl_graph_register == \"0\"")},
                  catalogue().axes);
  EXPECT_FALSE(logic.can_fire(0));
  EXPECT_FALSE(logic.can_fire(1)) << "the axis begins at 1";
  EXPECT_TRUE(logic.can_fire(2));
  EXPECT_FALSE(logic.can_fire(3));
  EXPECT_TRUE(logic.can_fire(4));
  const std::size_t last[] = {4};
  EXPECT_NE(logic.example(last).find("sm=8"), std::string::npos) << logic.example(last);
}

TEST(RuleLogicTest, ARuleThatAnEarlierOneHidesIsNeverFirst) {
  RuleLogic logic({rule("A", "tp > 1", "impl != local"), rule("B", "tp > 2", "impl != local"),
                   rule("C", "tp > 1", "impl == none")},
                  catalogue().axes);
  const std::size_t earlier[] = {0};
  EXPECT_FALSE(logic.can_fire_before(1, earlier));
  EXPECT_TRUE(logic.can_fire_before(2, earlier));
  const std::size_t both[] = {0, 2};
  EXPECT_EQ(logic.hiders(1, both), (std::vector<std::size_t>{2}))
      << "either hides it; the later one is kept";
}

TEST(RuleLogicTest, OurOwnRulesNeitherContradictNorHideEachOther) {
  std::vector<LogicRule> rules;
  std::vector<std::string> stages;
  for (const Rule& one : catalogue().rules.rules()) {
    if (one.status != "live" || one.severity != "error") {
      EXPECT_FALSE(one.why.empty()) << one.id;  // rules that are not live explain why
      continue;
    }
    LogicRule logic{.id = one.id, .when = one.when, .parts = {}};
    for (const RulePart& part : one.parts) logic.parts.push_back({part.when, part.require});
    rules.push_back(std::move(logic));
    stages.push_back(one.stage);
  }
  RuleLogic logic(rules, catalogue().axes);
  for (std::size_t i = 0; i < rules.size(); ++i) {
    EXPECT_TRUE(logic.can_fire(i)) << rules[i].id << " can never fire";
    EXPECT_TRUE(logic.can_hold(i)) << rules[i].id << " refuses all that it applies to";
    std::vector<std::size_t> earlier;
    for (std::size_t j = 0; j < i; ++j) earlier.push_back(j);
    EXPECT_TRUE(logic.can_fire_before(i, earlier))
        << rules[i].id << " is never the first: earlier rules refuse all that it refuses";
    for (std::size_t j = 0; j < i; ++j)
      if (stages[i] == stages[j]) {
        EXPECT_FALSE(logic.contradict(i, j)) << rules[i].id << " and " << rules[j].id;
      }
  }
}

}  // namespace
}  // namespace graphproof::matrix

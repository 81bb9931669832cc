#include "matrix/catalogue/rules.h"

#include <gtest/gtest.h>

#include "matrix/catalogue/catalogue.h"
#include "matrix/testing/thrown.h"

namespace graphproof::matrix {
namespace {

class RulesTest : public testing::Test {
 protected:
  Case named(const std::string& name) const { return case_from_name(catalogue_.axes, name, ""); }
  std::optional<Finding> refusal(const std::string& name) const {
    return catalogue_.rules.refusal(named(name), machine_);
  }
  RuleSet parse(const std::string& rules) const {
    return RuleSet::parse(
        parse_document(
            "{\"schema\": \"graphproof-rules/1\", \"dialect\": \"graphproof\", \"rules\": [" +
                rules + "]}",
            "r.json"),
        catalogue_.axes);
  }
  inline static const Catalogue catalogue_ = load_catalogue();  // read once, never changed
  const Machine machine_{.device = "sim", .slots = 4, .stack = {{"torch_version", "2.11.0"}}};
};

TEST_F(RulesTest, EachNegativeCaseBreaksItsRuleAndNoOtherError) {
  for (const Rule& rule : catalogue_.rules.rules()) {
    for (const Case& example : rule.breaks) {
      std::vector<std::string> errors;
      for (const Finding& finding : catalogue_.rules.evaluate(example, machine_))
        if (finding.severity == "error") errors.push_back(finding.rule);
      EXPECT_EQ(errors, std::vector<std::string>{rule.id}) << case_name(catalogue_.axes, example);
    }
  }
}

TEST_F(RulesTest, EveryLiveErrorHasANegativeCaseUnlessOnlyTheStackCanBreakIt) {
  for (const Rule& rule : catalogue_.rules.rules()) {
    if (rule.status != "live" || rule.severity != "error") continue;
    bool machine = false;
    for (const RulePart& part : rule.parts)
      for (const Input& input : part.require.inputs()) machine = machine || input.machine;
    EXPECT_NE(rule.breaks.empty(), !machine) << rule.id;
  }
}

TEST_F(RulesTest, EveryPartOfALiveErrorIsBrokenByOneOfItsCases) {
  for (const Rule& rule : catalogue_.rules.rules()) {
    if (rule.parts.size() == 1) continue;
    for (const RulePart& part : rule.parts) {
      bool broken = false;
      for (const Case& example : rule.breaks)
        broken = broken || (part.when.holds(example, machine_) == Truth::yes &&
                            part.require.holds(example, machine_) == Truth::no);
      EXPECT_TRUE(broken) << rule.id << ": " << part.require.text();
    }
  }
}

TEST_F(RulesTest, RefusedCasesNameTheRuleWithAFullMessage) {
  const struct {
    const char *name, *rule, *got, *want;
  } rows[] = {
      {"impl=full_iteration,nan_check_loss=true", "R035",
       "impl=full_iteration, nan_check_loss=true, nan_check_grad=false",
       "not nan_check_loss and not nan_check_grad"},
      {"impl=transformer_engine,modules=[moe,moe_router],model=moe,experts=4,topk=2,dispatch=drop_"
       "and_pad,dispatcher=alltoall",
       "R071", "impl=transformer_engine, modules=[moe,moe_router]",
       "not (moe in modules and moe_router in modules)"},
      {"impl=transformer_engine,modules=[moe_preprocess],model=moe,experts=4,topk=2,dispatch=drop_"
       "and_pad,dispatcher=alltoall",
       "R072", "impl=transformer_engine, modules=[moe_preprocess]",
       "moe_preprocess in modules implies moe_router in modules"},
      {"impl=full_iteration,rng_tracker=plain", "B08", "impl=full_iteration, rng_tracker=plain",
       "rng_tracker == graph_safe"},
      {"tp=2,hidden=48,heads=3", "G001", "tp=2, heads=3", "tp to divide heads: 3 over 2 leaves 1"},
      {"tp=3", "G001", "tp=3, heads=4", "tp to divide heads: 4 over 3 leaves 1"},
      {"pp=2,vpp=2,layers=4,microbatches=4,microbatch_group=1", "G001",
       "vpp=2, microbatch_group=1, pp=2, microbatches=4",
       "microbatch_group between pp and microbatches: 1 is not within 2 and 4"},
      {"pp=2,vpp=2,layers=4,microbatches=4,microbatch_group=3", "G001",
       "vpp=2, microbatch_group=3, microbatches=4, pp=2",
       "the last group of microbatches to be whole or at least pp: 4 over 3 leaves 1, and pp is 2"},
      {"vpp=2", "G003", "vpp=2, pp=1", "virtual stages only in a pipeline: vpp 2 with pp 1"},
      {"microbatch_group=2", "G003", "microbatch_group=2, vpp=1",
       "microbatch_group only with virtual stages, which alternate by it"},
      {"pp=2,layers=3", "G001", "pp=2, vpp=1, layers=3",
       "pp x vpp to divide layers: 3 over 2 leaves 1"},
  };
  for (const auto& row : rows) {
    const auto finding = refusal(row.name);
    ASSERT_TRUE(finding) << row.name;
    EXPECT_EQ(finding->rule, row.rule) << row.name;
    EXPECT_EQ(finding->got, row.got) << row.name;
    EXPECT_EQ(finding->want, row.want) << row.name;
    EXPECT_FALSE(finding->what.empty() || finding->why.empty() || finding->next.empty())
        << row.name;
  }
}

TEST_F(RulesTest, AllowedCasesAreNotRefused) {
  for (const char* name :
       {"default", "impl=full_iteration,tp=2,dp=2,microbatches=2,dropout=true",
        "impl=local,modules=[attn,mlp]", "impl=full_iteration,cpu_offload=true",
        "impl=transformer_engine,modules=[moe_router,moe_preprocess],model=moe,experts=4,topk=2,"
        "dispatch=dropless,dispatcher=alltoall",
        "impl=local,inference_scope=layer", "rng_tracker=plain", "nan_check_loss=true"})
    EXPECT_FALSE(refusal(name)) << name << ": " << refusal(name)->rule;
}

TEST_F(RulesTest, FirstRuleInSourceOrderIsNamed) {
  EXPECT_EQ(refusal("impl=full_iteration,nan_check_loss=true,modules=[attn],rng_tracker=plain,tp=3")
                ->rule,
            "R035");
  EXPECT_EQ(refusal("impl=full_iteration,modules=[attn],rng_tracker=plain,tp=3")->rule, "R033");
  EXPECT_EQ(refusal("impl=full_iteration,rng_tracker=plain,tp=3")->rule, "B08");
}

TEST_F(RulesTest, UnknownStackVariableLeavesTheRuleUndecided) {
  const Case test_case = named(
      "dp=2,ep=2,model=moe,experts=4,topk=2,dispatch=dropless,dispatcher=alltoall,precision=bf16,"
      "overlap_ep_comm=true");
  const auto findings = catalogue_.rules.evaluate(test_case, Machine{});
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].rule, "R092");
  EXPECT_TRUE(findings[0].unknown);
  EXPECT_EQ(findings[0].got, "overlap_ep_comm=true, torch_version=unknown");
  EXPECT_FALSE(catalogue_.rules.refusal(test_case, Machine{}));
  EXPECT_EQ(catalogue_.rules.refusal(test_case, {.stack = {{"torch_version", "2.5.1"}}})->rule,
            "R092");
  EXPECT_FALSE(catalogue_.rules.refusal(test_case, machine_));
}

// R092 reads a stack variable; UnknownStackVariableLeavesTheRuleUndecided has its cases.
TEST_F(RulesTest, EveryLiveErrorHasACaseThatBreaksItAndOneToWhichItAppliesAndThatHolds) {
  for (const Rule& rule : catalogue_.rules.rules())
    if (rule.status == "live" && rule.severity == "error" && rule.id != "R092") {
      EXPECT_FALSE(rule.breaks.empty()) << rule.id;
      // The default case breaks no rule. rule_logic_test finds, for each rule, values to which it
      // applies and which do not break it.
      EXPECT_FALSE(catalogue_.rules.check(rule, Case{}, machine_)) << rule.id;
    }
}

TEST_F(RulesTest, RemovedAndFixRowsRefuseNothing) {
  EXPECT_FALSE(refusal("impl=local,allocator=expandable"));
  const auto findings =
      catalogue_.rules.evaluate(named("impl=local,modules=[moe_router],model=moe,experts=4,topk=2,"
                                      "dispatch=dropless,dispatcher=alltoall"),
                                machine_);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].rule, "R070");
  EXPECT_EQ(findings[0].severity, "fix");
}

TEST_F(RulesTest, BrokenRulesAreRefusedAtTheirPlace) {
  const std::string rest =
      "\"stage\": \"cli\", \"status\": \"live\", \"severity\": \"error\", \"what\": \"w\", "
      "\"why\": \"y\", \"next\": \"n\", \"source\": \"s\"";
  const struct {
    std::string rule;
    const char* what;
  } rows[] = {
      {"{\"id\": \"A\", " + rest + "}", "a rule needs either `require` or `parts`"},
      {"{\"id\": \"A\", " + rest + ", \"require\": \"ipml == none\"}", "unknown name `ipml`"},
      {"{\"id\": \"A\", " + rest + ", \"require\": \"true\", \"wen\": \"true\"}",
       "unknown key `wen`"},
      {"{\"id\": \"A\", " + rest + ", \"require\": \"true\", \"want\": \"{tp\"}",
       "an unterminated placeholder"},
      {"{\"id\": \"A\", " + rest + ", \"require\": \"true\", \"want\": \"{tpp}\"}",
       "unknown name `tpp`"},
      {"{\"id\": \"A\", " + rest + ", \"require\": \"true\"}, {\"id\": \"A\", " + rest +
           ", \"require\": \"true\"}",
       "the rule `A` appears twice"},
      {"{\"id\": \"A\", \"stage\": \"clii\"," + rest.substr(rest.find("\"status")) +
           ", \"require\": \"true\"}",
       "unknown value `clii`"},
      {"{\"id\": \"A\", " + rest.substr(0, rest.find("\"next")) +
           "\"next\": \"\", \"source\": \"s\", \"require\": \"true\"}",
       "an empty `next`"},
      {"{\"id\": \"A\", " + rest + ", \"require\": \"true\", \"versions\": {\"from\": \"x\"}}",
       "a version that can't be read"},
      {"{\"id\": \"A\", " + rest + ", \"require\": \"true\", \"breaks\": [{\"tpp\": 1}]}",
       "unknown axis `tpp`"},
  };
  for (const auto& row : rows) EXPECT_EQ(thrown([&] { parse(row.rule); }).what, row.what);
}

}  // namespace
}  // namespace graphproof::matrix

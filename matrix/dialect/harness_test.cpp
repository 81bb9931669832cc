// The command line of a performance harness, whose flags override a recipe that is not read here.
#include <gtest/gtest.h>

#include <algorithm>

#include "matrix/dialect/check.h"
#include "matrix/dialect/command_line.h"

namespace graphproof::dialect {
namespace {

constexpr const char* kRecipe = "-m qwen -mr qwen3_30b_a3b -ng 8 -g b200 ";

Verdict verdict_of(const std::string& flags) {
  static const Dialect bridge = load_dialect("megatron-bridge", "");
  return check(bridge, read_command_line(bridge, shell_words(kRecipe + flags), 0, true));
}

const Finding* finding(const Verdict& verdict, const std::string& rule) {
  const auto found = std::find_if(verdict.findings.begin(), verdict.findings.end(),
                                  [&](const Finding& one) { return one.rule == rule; });
  return found == verdict.findings.end() ? nullptr : &*found;
}

std::string effective(const Verdict& verdict, const std::string& option) {
  const auto json = effective_json(verdict.effective);
  return json.contains(option) ? json[option].dump() : "unknown";
}

TEST(Harness, CommaSeparatedScopesAndAutomaticTrackers) {
  const Verdict verdict = verdict_of(
      "--cuda_graph_impl transformer_engine --cuda_graph_scope attn,moe_router,moe_preprocess");
  EXPECT_EQ(effective(verdict, "cuda_graph_modules"), R"(["attn","moe_router","moe_preprocess"])");
  EXPECT_EQ(effective(verdict, "te_rng_tracker"), "true");
  EXPECT_EQ(effective(verdict, "use_te_rng_tracker"), "true");
  EXPECT_EQ(
      effective(verdict_of("--cuda_graph_impl none --cuda_graph_scope attn"), "cuda_graph_modules"),
      "[]");
}

TEST(Harness, TheOlderSpellingOfTheWholeIterationIsTheOnlyOne) {
  const Verdict taken = verdict_of("--cuda_graph_impl local --cuda_graph_scope full_iteration");
  EXPECT_TRUE(taken.accepted);
  EXPECT_EQ(effective(taken, "cuda_graph_impl"), R"("full_iteration")");
  EXPECT_EQ(effective(taken, "check_for_nan_in_loss"), "false");
  const Verdict refused = verdict_of("--cuda_graph_impl full_iteration");
  EXPECT_FALSE(refused.accepted);
  EXPECT_EQ(finding(refused, "BP05")->want, "one of none, local, transformer_engine");
}

TEST(Harness, WhatTheRecipeSetsIsUnknownAndNeverPassed) {
  const Verdict open = verdict_of("--cuda_graph_impl transformer_engine --cuda_graph_scope moe");
  EXPECT_TRUE(open.accepted);
  EXPECT_EQ(effective(open, "num_moe_experts"), "unknown");
  ASSERT_NE(finding(open, "R073"), nullptr);
  EXPECT_TRUE(finding(open, "R073")->unknown);
  EXPECT_NE(finding(open, "BN10"), nullptr);
}

TEST(Harness, OverridesByPathSetFieldsOfTheRecipe) {
  const Verdict dense = verdict_of(
      "model.num_moe_experts=null --cuda_graph_impl transformer_engine --cuda_graph_scope moe");
  EXPECT_FALSE(dense.accepted);
  const Finding* first = finding(dense, "R073");
  ASSERT_NE(first, nullptr);
  EXPECT_TRUE(first->first);
  EXPECT_GT(first->place.column, 0);
  const Verdict listed = verdict_of(
      "++model.cuda_graph_impl=transformer_engine 'model.cuda_graph_modules=[attn,mlp]'");
  EXPECT_EQ(effective(listed, "cuda_graph_modules"), R"(["attn","mlp"])");
  EXPECT_FALSE(verdict_of("attn").accepted);
}

TEST(Harness, MegatronsOwnParserNeverSeesItsArguments) {
  const Verdict verdict =
      verdict_of("--cuda_graph_impl transformer_engine --cuda_graph_scope attn");
  for (const Finding& one : verdict.findings)
    EXPECT_TRUE(one.stage != Stage::cli || one.rule[0] == 'B') << one.rule;
}

}  // namespace
}  // namespace graphproof::dialect

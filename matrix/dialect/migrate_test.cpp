// Every row of upstream's migration of older graph options: the input, and today's spelling of it.
#include <gtest/gtest.h>

#include "matrix/dialect/command_line.h"
#include "matrix/dialect/config_file.h"
#include "matrix/dialect/dialect.h"
#include "matrix/dialect/migrate.h"
#include "matrix/testing/newest_megatron.h"

namespace graphproof::dialect {
namespace {

struct Row {
  const char* before;
  const char* today;  // empty: the error `rule`
  const char* rule;   // the rule of the finding about it
};

TEST(Migrate, CommandLinesOfEveryRow) {
  const Row rows[] = {
      {"--enable-cuda-graph", "--cuda-graph-impl local", "R011"},
      {"--external-cuda-graph", "--cuda-graph-impl transformer_engine", "R012"},
      {"--enable-cuda-graph --cuda-graph-impl local", "", "R009"},
      {"--enable-cuda-graph --external-cuda-graph", "", "R010"},
      {"--cuda-graph-impl transformer_engine --cuda-graph-scope attn mlp",
       "--cuda-graph-impl transformer_engine --cuda-graph-modules attn mlp", "R003"},
      {"--cuda-graph-impl transformer_engine --cuda-graph-scope attn --cuda-graph-modules attn", "",
       "R013"},
      {"--cuda-graph-impl local --cuda-graph-modules full", "--cuda-graph-impl local", "R018"},
      {"--cuda-graph-impl local --cuda-graph-modules full attn", "", "R017"},
      {"--cuda-graph-modules full_iteration", "--cuda-graph-impl full_iteration", "R024"},
      {"--cuda-graph-impl local --cuda-graph-modules full_iteration",
       "--cuda-graph-impl full_iteration", "R024"},
      {"--cuda-graph-impl full_iteration --cuda-graph-modules full_iteration "
       "--inference-cuda-graph-scope none",
       "--cuda-graph-impl full_iteration", "R024"},
      {"--cuda-graph-impl transformer_engine --cuda-graph-modules full_iteration", "", "R020"},
      {"--cuda-graph-impl local --inference-cuda-graph-scope layer --cuda-graph-modules "
       "full_iteration",
       "", "R021"},
      {"--cuda-graph-impl local --cuda-graph-modules full_iteration attn",
       "--cuda-graph-impl full_iteration --cuda-graph-modules attn", "R024"},
      {"--cuda-graph-impl local --cuda-graph-modules full_iteration_inference",
       "--cuda-graph-impl local --inference-cuda-graph-scope block", "R026"},
      {"--cuda-graph-impl local --cuda-graph-modules full_iteration_inference attn",
       "--cuda-graph-impl local --cuda-graph-modules attn --inference-cuda-graph-scope block",
       "R026"},
      {"--cuda-graph-impl local --inference-cuda-graph-scope layer --cuda-graph-modules "
       "full_iteration_inference",
       "", "R023"},
      {"--cuda-graph-modules full_iteration_inference", "", "R027"},
      {"--cuda-graph-impl transformer_engine --cuda-graph-modules full_iteration_inference", "",
       "R022"},
      {"--cuda-graph-impl full_iteration --cuda-graph-modules full_iteration_inference", "",
       "R022"},
      {"--cuda-graph-modules full_iteration full_iteration_inference", "", "R019"},
      {"--cuda-graph-modules full_iteration full_iteration", "--cuda-graph-impl full_iteration",
       "R024"},
      {"--cuda-graph-impl local", "--cuda-graph-impl local", "R030"},
      {"--enable-cuda-graph --cuda-graph-scope full_iteration", "--cuda-graph-impl full_iteration",
       "R024"},
      {"--enable-cuda-graph --cuda-graph-num-warmup-steps 3",
       "--cuda-graph-impl local --cuda-graph-warmup-steps 3", "RN18"},
      {"--enable-cuda-graph --cuda-graph-num-warmup-steps=3 --bf16",
       "--cuda-graph-impl local --cuda-graph-warmup-steps=3 --bf16", "RN18"},
      {"--moe-router-padding-for-fp8 --bf16", "--moe-router-padding-for-quantization --bf16", ""},
      {"--inference-cuda-graph-scope attn", "", "R004"},
  };
  for (const Row& row : rows) {
    const Migration migration = migrate_command_line(megatron(), shell_words(row.before), 0);
    const bool found =
        std::string_view(row.rule).empty() ||
        std::any_of(migration.notes.begin(), migration.notes.end(),
                    [&](const Finding& finding) { return finding.rule == row.rule; });
    EXPECT_TRUE(found) << row.before << " does not report " << row.rule;
    // R027 has no effect today: the result is a command line without graphs.
    const bool refused =
        std::string_view(row.today).empty() && std::string_view(row.rule) != "R027";
    EXPECT_EQ(migration.possible, !refused) << row.before;
    if (migration.possible) {
      EXPECT_EQ(shell_line(migration.words), row.today) << row.before;
    }
  }
}

TEST(Migrate, WhatIsPrintedIsReadWithoutAnotherRewriting) {
  for (const char* before :
       {"--enable-cuda-graph", "--cuda-graph-modules full_iteration",
        "--cuda-graph-impl local --cuda-graph-modules full_iteration_inference attn"}) {
    const Migration once = migrate_command_line(megatron(), shell_words(before), 0);
    const Migration twice = migrate_command_line(megatron(), once.words, 0);
    EXPECT_EQ(twice.words, once.words) << before;
    for (const Finding& finding : twice.notes) EXPECT_EQ(finding.rule, "R030") << before;
  }
}

struct Worked {
  const char* name;
  const char* object;
  const char* implementation;  // empty: the error `rule`
  const char* modules;
  const char* scope;
  const char* rule;
};

TEST(Migrate, WorkedConfigurationsEndAsUpstreamsDo) {
  const Worked rows[] = {
      {"M1", "{}", "none", "[]", "none", ""},
      {"M2", R"({"cuda_graph_impl": "local"})", "local", "[]", "layer", ""},
      {"M3", R"({"cuda_graph_impl": "local", "cuda_graph_modules": "full_iteration"})",
       "full_iteration", "[]", "none", ""},
      {"M4", R"({"cuda_graph_impl": "none", "cuda_graph_modules": "full_iteration"})",
       "full_iteration", "[]", "none", ""},
      {"M5", R"({"cuda_graph_impl": "transformer_engine", "cuda_graph_modules": "full_iteration"})",
       "", "", "", "R020"},
      {"M6",
       R"({"cuda_graph_impl": "local", "inference_cuda_graph_scope": "layer",
           "cuda_graph_modules": "full_iteration"})",
       "", "", "", "R021"},
      {"M7", R"({"cuda_graph_impl": "local", "cuda_graph_modules": "full_iteration_inference"})",
       "local", "[]", "block", "R137"},
      {"M8", R"({"cuda_graph_impl": "none", "cuda_graph_modules": "full_iteration_inference"})",
       "none", "[]", "none", "R027"},
      {"M9",
       R"({"cuda_graph_impl": "local", "inference_cuda_graph_scope": "layer",
           "cuda_graph_modules": "full_iteration_inference"})",
       "", "", "", "R023"},
      {"M10", R"({"cuda_graph_impl": "local", "cuda_graph_modules": ["full_iteration", "attn"]})",
       "", "", "", "R033"},
      {"M11", R"({"cuda_graph_impl": "local", "cuda_graph_modules": ["full", "attn"]})", "", "", "",
       "R017"},
      {"M12",
       R"({"cuda_graph_impl": "local", "num_moe_experts": 4,
           "cuda_graph_modules": ["moe_router"]})",
       "local", R"(["moe_router","moe_preprocess"])", "layer", "R070"},
      {"M13",
       R"({"cuda_graph_impl": "transformer_engine", "num_moe_experts": 4,
           "cuda_graph_modules": ["moe_preprocess"]})",
       "", "", "", "R072"},
      {"M14", R"({"enable_cuda_graph": true})", "local", "[]", "layer", "R011"},
      {"M15", R"({"enable_cuda_graph": true, "cuda_graph_scope": "full_iteration"})",
       "full_iteration", "[]", "none", "R024"},
      {"M16", R"({"enable_cuda_graph": true, "cuda_graph_impl": "local"})", "", "", "", "R009"},
      {"M17", R"({"cuda_graph_impl": "local", "inference_cuda_graph_scope": "none"})", "", "", "",
       "R032"},
      {"M18", R"({"cuda_graph_impl": "full_iteration", "inference_cuda_graph_scope": "layer"})", "",
       "", "", "R032"},
      {"M19",
       R"({"cuda_graph_impl": "transformer_engine", "cuda_graph_scope": "attn",
           "cuda_graph_modules": ["attn"]})",
       "", "", "", "R014"},
      {"M20",
       R"({"cuda_graph_impl": "transformer_engine",
           "cuda_graph_scope": {"_target_": "megatron.core.transformer.enums.CudaGraphScope",
                                "_args_": [2]}})",
       "transformer_engine", R"(["attn"])", "none", "R014"},
  };
  for (const Worked& row : rows) {
    const Verdict verdict = check(
        megatron(), read_config_file(megatron(), matrix::parse_document(row.object, row.name)));
    const nlohmann::json effective = effective_json(verdict.effective);
    const auto found =
        std::find_if(verdict.findings.begin(), verdict.findings.end(),
                     [&](const Finding& finding) { return finding.rule == row.rule; });
    EXPECT_TRUE(std::string_view(row.rule).empty() || found != verdict.findings.end())
        << row.name << " does not report " << row.rule;
    if (std::string_view(row.implementation).empty()) {
      EXPECT_FALSE(verdict.accepted) << row.name;
      EXPECT_TRUE(found != verdict.findings.end() && found->first)
          << row.name << ": " << row.rule << " is not the first";
      continue;
    }
    EXPECT_TRUE(verdict.accepted) << row.name << verdict.json().dump(1).substr(0, 1500);
    EXPECT_EQ(effective.at("cuda_graph_impl"), row.implementation) << row.name;
    EXPECT_EQ(effective.at("cuda_graph_modules").dump(), row.modules) << row.name;
    EXPECT_EQ(effective.at("inference_cuda_graph_scope"), row.scope) << row.name;
  }
}

TEST(Migrate, ConfigurationsKeepTheirOtherKeysAndTheirPlace) {
  const matrix::Document document = matrix::parse_document(
      R"({"num_layers": 4, "model": {"enable_cuda_graph": true, "cuda_graph_scope": "full",
                                     "cuda_graph_num_warmup_steps": 2}, "bf16": true})",
      "c.json");
  EXPECT_EQ(migrate_configuration(megatron(), document).object.dump(),
            R"({"num_layers":4,"model":{"cuda_graph_impl":"local","cuda_graph_modules":[],)"
            R"("cuda_graph_warmup_steps":2},"bf16":true})");
}

struct Printed {
  const char* line;
  bool accepted;
  const char* implementation;
  const char* modules;
  const char* scope;
};

TEST(Migrate, CommandsOfTheGuidesMeanWhatTheGuidesClaim) {
  const Printed rows[] = {
      {"--cuda-graph-impl local", true, "local", "[]", "layer"},
      {"--cuda-graph-impl local --cuda-graph-modules attn mlp", true, "local", R"(["attn","mlp"])",
       "layer"},
      {"--cuda-graph-impl transformer_engine", true, "transformer_engine", "[]", "none"},
      {"--cuda-graph-impl transformer_engine --cuda-graph-modules attn mlp", true,
       "transformer_engine", R"(["attn","mlp"])", "none"},
      {"--cuda-graph-impl transformer_engine --cuda-graph-modules attn moe_router moe_preprocess "
       "--num-experts 8 --disable-bias-linear",
       true, "transformer_engine", R"(["attn","moe_router","moe_preprocess"])", "none"},
      {"--cuda-graph-impl full_iteration --no-check-for-nan-in-loss-and-grad", true,
       "full_iteration", "[]", "none"},
      {"--cuda-graph-impl full_iteration", false, "full_iteration", "[]", "none"},
      {"--enable-cuda-graph --cuda-graph-scope full_iteration --cuda-graph-warmup-steps 1 "
       "--no-check-for-nan-in-loss-and-grad",
       true, "full_iteration", "[]", "none"},
      {"--cuda-graph-impl local --cuda-graph-scope full_iteration "
       "--no-check-for-nan-in-loss-and-grad",
       true, "full_iteration", "[]", "none"},
      {"--cuda-graph-impl local --cuda-graph-scope full_iteration_inference", true, "local", "[]",
       "block"},
      {"--cuda-graph-impl local --cuda-graph-scope attn moe_router moe_preprocess "
       "full_iteration_inference --num-experts 8 --disable-bias-linear",
       true, "local", R"(["attn","moe_router","moe_preprocess"])", "block"},
      {"--cuda-graph-impl local --inference-cuda-graph-scope block", true, "local", "[]", "block"},
      {"--external-cuda-graph", true, "transformer_engine", "[]", "none"},
      {"--enable-cuda-graph --cuda-graph-num-warmup-steps 3", false, "local", "[]", "layer"},
  };
  for (const Printed& row : rows) {
    const Verdict verdict =
        check(megatron(), read_command_line(megatron(), shell_words(row.line), 0, false));
    const nlohmann::json effective = effective_json(verdict.effective);
    EXPECT_EQ(verdict.accepted, row.accepted)
        << row.line << verdict.json().at("findings").dump(1).substr(0, 800);
    EXPECT_EQ(effective.at("cuda_graph_impl"), row.implementation) << row.line;
    EXPECT_EQ(effective.at("cuda_graph_modules").dump(), row.modules) << row.line;
    EXPECT_EQ(effective.at("inference_cuda_graph_scope"), row.scope) << row.line;
  }
}

}  // namespace
}  // namespace graphproof::dialect

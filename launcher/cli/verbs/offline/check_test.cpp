// The verbs check and rules: what they read, what they print, and their exit codes.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>
#include <set>

#include "launcher/cli/testing/command_under_test.h"
#include "launcher/cli/yaml_document.h"
#include "matrix/catalogue/bad_stacks.h"
#include "matrix/input/input_error.h"

namespace graphproof::cli {
namespace {

using nlohmann::json;

using CheckTest = CommandUnderTest;

json finding(const json& verdict, const std::string& rule) {
  for (const json& one : verdict.at("findings"))
    if (one.at("rule") == rule) return one;
  return nullptr;
}

TEST_F(CheckTest, ARefusedCommandLineIsExitOneWithPositionReasonAndNextStep) {
  const Printed printed = cli({"check", "--json", "--", "--cuda-graph-impl", "full_iteration"});
  EXPECT_EQ(printed.exit_code, 1) << printed.err;
  const json verdict = json::parse(printed.out);
  EXPECT_EQ(verdict.at("accepted"), false);
  const json refused = finding(verdict, "R035");
  ASSERT_FALSE(refused.is_null()) << printed.out;
  EXPECT_EQ(refused.at("first"), true);
  EXPECT_EQ(refused.at("severity"), "error");
  EXPECT_EQ(refused.at("position"), json({{"source", "command line"}, {"line", 1}, {"column", 1}}));
  EXPECT_EQ(refused.at("got"),
            "cuda_graph_impl=full_iteration, check_for_nan_in_loss_and_grad=true");
  EXPECT_EQ(refused.at("next"), "add --no-check-for-nan-in-loss-and-grad");
}

TEST_F(CheckTest, WhatUpstreamRewritesIsAppliedInItsOrder) {
  const Printed printed = cli({"check", "--json", "--", "--enable-cuda-graph", "--cuda-graph-scope",
                               "full_iteration", "--fp16"});
  EXPECT_EQ(printed.exit_code, 0) << printed.out;
  const json verdict = json::parse(printed.out);
  EXPECT_EQ(verdict.at("effective").at("cuda_graph_impl"), "full_iteration");
  EXPECT_EQ(verdict.at("effective").at("cuda_graph_modules"), json::array());
  EXPECT_EQ(verdict.at("effective").at("inference_cuda_graph_scope"), "none");
  EXPECT_EQ(verdict.at("effective").at("te_rng_tracker"), true);
  for (const char* rule : {"R003", "R011", "R024", "R036", "R058"})
    EXPECT_FALSE(finding(verdict, rule).is_null()) << rule;
}

TEST_F(CheckTest, WhatWasNotGivenIsUndecidedAndWhatTheToolsEnvironmentHoldsDoesNotCount) {
  ASSERT_EQ(setenv("CUDA_DEVICE_MAX_CONNECTIONS", "1", 1), 0);
  const std::vector<std::string> line{"--tensor-model-parallel-size", "2"};
  const auto run = [&](std::vector<std::string> options) {
    options.insert(options.begin(), {"check", "--json"});
    options.push_back("--");
    options.insert(options.end(), line.begin(), line.end());
    return json::parse(cli(options).out);
  };
  EXPECT_EQ(finding(run({}), "R042").at("unknown"), true);
  EXPECT_EQ(run({}).at("accepted"), true);
  EXPECT_EQ(run({"--arch", "sm_90"}).at("accepted"), false);
  EXPECT_EQ(run({"--arch", "sm_90", "--env", "CUDA_DEVICE_MAX_CONNECTIONS="}).at("accepted"),
            false);
  EXPECT_EQ(run({"--arch", "sm_90", "--env", "CUDA_DEVICE_MAX_CONNECTIONS=1"}).at("accepted"),
            true);
  EXPECT_EQ(run({"--arch", "sm_100"}).at("accepted"), true);
  unsetenv("CUDA_DEVICE_MAX_CONNECTIONS");
}

TEST_F(CheckTest, FilesKeepTheirLines) {
  const std::string yaml =
      file("a.yaml",
           "# a run\nmodel_parallel:\n  tensor_model_parallel_size: 1\ncuda_graph_impl: "
           "transformer_engine\ncuda_graph_modules: [moe_preprocess]\n");
  const Printed printed = cli({"check", "--json", yaml});
  EXPECT_EQ(printed.exit_code, 1) << printed.out << printed.err;
  const json refused = finding(json::parse(printed.out), "R072");
  ASSERT_FALSE(refused.is_null()) << printed.out;
  EXPECT_EQ(refused.at("position").at("line"), 5);
  const std::string same = file("a.json",
                                "{\n  \"cuda_graph_impl\": \"transformer_engine\",\n  "
                                "\"cuda_graph_modules\": [\"moe_preprocess\"]\n}\n");
  EXPECT_EQ(
      finding(json::parse(cli({"check", "--json", same}).out), "R072").at("position").at("line"),
      3);
}

TEST_F(CheckTest, EnumerationsOfConfigurationsAreConvertedByName) {
  const std::string scope =
      file("scope.yaml",
           "cuda_graph_impl: transformer_engine\ncuda_graph_scope:\n- _target_: "
           "megatron.core.transformer.enums.CudaGraphScope\n  _args_: [2]\n  _call_: true\n");
  EXPECT_EQ(
      json::parse(cli({"check", "--json", scope}).out).at("effective").at("cuda_graph_modules"),
      json({"attn"}));
}

TEST_F(CheckTest, OurOwnCasesAreJudgedByOurRules) {
  const Printed printed = cli({"check", "--json", "impl=full_iteration,nan_check_loss=true"});
  EXPECT_EQ(printed.exit_code, 1);
  EXPECT_EQ(finding(json::parse(printed.out), "R035").at("first"), true);
  EXPECT_EQ(cli({"check", file("case.json", "{\"impl\": \"local\", \"tp\": 2}")}).exit_code, 0);
}

TEST_F(CheckTest, VersionsThatAreKnownToBeBadAreNamedForTheUseThatTheyAreBadFor) {
  const auto of = [&](std::vector<std::string> options) {
    options.insert(options.begin(), {"check", "--json"});
    options.insert(options.end(), {"--", "--cuda-graph-impl", "local"});
    return json::parse(cli(options).out);
  };
  const std::vector<std::string> bad = {"--stack", "nccl_version=2.28.9", "--world-size", "16",
                                        "--env",   "LOCAL_WORLD_SIZE=8"};
  const json verdict = of(bad);
  const json found = finding(verdict, "V01");
  ASSERT_FALSE(found.is_null()) << verdict.dump(2);
  EXPECT_EQ(found.value("unknown", false), false) << found;
  EXPECT_EQ(found.at("got"), "libnccl 2.28.9");
  EXPECT_EQ(found.at("severity"), "hazard");
  EXPECT_NE(found.at("why").get<std::string>().find("https://"), std::string::npos);
  EXPECT_TRUE(finding(verdict, "V02").is_null()) << "no expandable segments";
  EXPECT_EQ(verdict.at("accepted"), of({}).at("accepted")) << "upstream refuses nothing for it";

  struct Row {
    const char* name;
    std::size_t option;  // that is changed
    const char* to;
    std::optional<bool> unknown;  // of V01; nothing if it is not found
  };
  const Row rows[] = {{"a newer NCCL", 1, "nccl_version=2.30.4", {}},
                      {"one machine", 5, "LOCAL_WORLD_SIZE=16", {}},
                      {"one rank", 3, "1", {}},
                      {"machines not known", 5, "LOCAL_RANK=0", true},
                      {"NCCL not known", 1, "sm=90", true}};
  for (const Row& row : rows) {
    std::vector<std::string> options = bad;
    options[row.option] = row.to;
    const json one = finding(of(options), "V01");
    EXPECT_EQ(!one.is_null(), row.unknown.has_value()) << row.name << ": " << one;
    if (!one.is_null()) {
      EXPECT_EQ(one.at("unknown"), row.unknown.value_or(false)) << row.name;
    }
  }
  std::vector<std::string> segments = bad;
  segments.insert(segments.end(), {"--env", "PYTORCH_ALLOC_CONF=expandable_segments:True"});
  EXPECT_FALSE(finding(of(segments), "V02").is_null());
  segments.insert(segments.end(), {"--env", "NCCL_GRAPH_REGISTER=0"});
  EXPECT_TRUE(finding(of(segments), "V02").is_null());
  EXPECT_FALSE(finding(json::parse(cli({"check", "--json", "--stack", "nccl_version=2.28.9",
                                        "impl=local,tp=2,allocator=expandable"})
                                       .out),
                       "V02")
                   .is_null());
}

TEST_F(CheckTest, NoRowOfBadVersionsHasTheIdOfARule) {
  const matrix::BadStackTable table = matrix::load_bad_stacks();
  for (const char* dialect :
       {"graphproof", "megatron-lm", "megatron-bridge", "legacy", "pytorch"}) {
    const json rules = json::parse(cli({"rules", "--json", "--dialect", dialect}).out);
    EXPECT_FALSE(rules.empty()) << dialect;
    for (const json& rule : rules)
      for (const matrix::BadStack& row : table.rows())
        EXPECT_NE(rule.at("rule"), row.id) << dialect;
  }
}

TEST_F(CheckTest, OtherSubjectsMayCaptureGroupedProducts) {
  const auto of = [&](const std::string& subject) {
    return finding(
        json::parse(cli({"check", "--json", "impl=full_iteration,subject=" + subject}).out), "V03");
  };
  EXPECT_TRUE(of("reference").is_null()) << "its engines multiply expert by expert";
  ASSERT_FALSE(of("megatron_core").is_null());
  EXPECT_EQ(of("megatron_core").at("unknown"), true);
}

TEST_F(CheckTest, SarifNamesRuleLevelAndPlace) {
  const std::string path = file(
      "b.json",
      "{\n  \"cuda_graph_impl\": \"full_iteration\",\n  \"cuda_graph_modules\": [\"attn\"]\n}\n");
  const Printed printed = cli({"check", "--sarif", path});
  EXPECT_EQ(printed.exit_code, 1);
  const json report = json::parse(printed.out);
  EXPECT_EQ(report.at("version"), "2.1.0");
  const json& run = report.at("runs").at(0);
  EXPECT_EQ(run.at("tool").at("driver").at("name"), "graphproof check");
  const json& result = run.at("results").at(0);
  EXPECT_EQ(result.at("ruleId"), "R033");
  EXPECT_EQ(result.at("level"), "error");
  EXPECT_EQ(result.at("locations").at(0).at("physicalLocation").at("artifactLocation").at("uri"),
            path);
  EXPECT_EQ(result.at("locations").at(0).at("physicalLocation").at("region").at("startLine"), 3);
}

TEST_F(CheckTest, MigrationPrintsTodaysSpelling) {
  EXPECT_EQ(
      cli({"check", "--migrate", "--", "torchrun", "pretrain_gpt.py", "--enable-cuda-graph",
           "--cuda-graph-num-warmup-steps", "3", "--bf16"})
          .out,
      "torchrun pretrain_gpt.py --cuda-graph-impl local --cuda-graph-warmup-steps 3 --bf16\n");
  const Printed refused =
      cli({"check", "--migrate", "--", "--enable-cuda-graph", "--cuda-graph-impl", "local"});
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_NE(refused.err.find("R009 error"), std::string::npos) << refused.err;
  EXPECT_EQ(refused.out, "");
}

// Ten aliases of ten aliases, and so on: 10^12 words if they were written out.
std::string bomb() {
  std::string text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 12; ++i) {
    const std::string alias = "*a" + std::to_string(i - 1);
    text += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [" + alias;
    for (int j = 1; j < 10; ++j) text += ", " + alias;
    text += "]\n";
  }
  return text;
}

TEST_F(CheckTest, WrongTypesAreFindingsWithTheirPlace) {
  const json verdict = json::parse(cli({"check", "--json",
                                        file("t.yaml",
                                             "tensor_model_parallel_size: four\ncuda_graph_impl: "
                                             "[local]\ncuda_graph_warmup_steps: 1.5\n")})
                                       .out);
  EXPECT_EQ(verdict.at("accepted"), false);
  EXPECT_EQ(finding(verdict, "R029").at("position").at("line"), 2);
  EXPECT_EQ(finding(verdict, "RN05").at("position").at("line"), 1);
}

TEST_F(CheckTest, UndecidedRulesAreCountedAndListedWhenAskedFor) {
  const std::vector<std::string> line{"--", "--tensor-model-parallel-size", "2",
                                      "--cuda-graph-impl", "local"};
  const auto shown = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), line.begin(), line.end());
    return cli(arguments).out;
  };
  const std::string folded = shown({"check"}), listed = shown({"check", "--all"});
  EXPECT_NE(folded.find(" rules undecided, because these are not known: "), std::string::npos)
      << folded;
  EXPECT_NE(folded.find("; --all lists them\n"), std::string::npos) << folded;
  EXPECT_EQ(folded.find("\n  R042 ("), std::string::npos) << folded;
  EXPECT_NE(listed.find("\n  R042 ("), std::string::npos) << listed;
}

TEST_F(CheckTest, AnUnknownFlagIsShownAlthoughItMayBelongToTheScript) {
  const auto checked =
      cli({"check", "--dialect", "megatron-lm", "--world-size", "1", "--", "--frobnicate", "7"});
  EXPECT_EQ(checked.exit_code, 0) << checked.out;
  EXPECT_NE(checked.out.find("RN01 error, unless your own script defines it: an option that "
                             "upstream's parser does not have\n"
                             "  at    command line:1:1\n  got   --frobnicate\n"),
            std::string::npos)
      << checked.out;
}

TEST_F(CheckTest, AnErrorOfALaterStageRefusesToo) {
  // R189 is met when the layers are built, after parser and configuration have accepted.
  const Printed printed = cli({"check", "--json", "--stack", "te_version=none",
                               file("l.json", R"({"cuda_graph_impl": "transformer_engine"})")});
  EXPECT_EQ(printed.exit_code, 1) << printed.out;
  const json verdict = json::parse(printed.out);
  EXPECT_EQ(verdict.at("accepted"), false);
  EXPECT_EQ(finding(verdict, "R189").at("first"), true) << verdict.at("findings").dump(1);
  EXPECT_EQ(finding(verdict, "R189").at("stage"), "construct");
}

TEST_F(CheckTest, AnErrorThatNoFactDecidesIsListed) {
  const std::vector<std::string> line{"--",
                                      "--perform-rl-step",
                                      "--rl-persist-cuda-graphs",
                                      "--cuda-graph-impl",
                                      "local",
                                      "--rl-kv-cache-management-mode",
                                      "recompute"};
  const auto verdict = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"check", "--json"});
    arguments.insert(arguments.end(), line.begin(), line.end());
    return json::parse(cli(arguments).out);
  };
  const json open = verdict({});
  EXPECT_EQ(open.at("accepted"), true);
  EXPECT_NE(open.at("undecided").dump().find("R063"), std::string::npos) << open;
  const json decided = verdict({"--stack", "torch_memory_saver=false"});
  EXPECT_EQ(decided.at("accepted"), false);
  EXPECT_EQ(finding(decided, "R063").at("first"), true);
}

TEST_F(CheckTest, AReleaseHasItsOwnOptionsAndRules) {
  const std::string flag = "--moe-use-grouped-tensor";
  EXPECT_EQ(cli({"check", "--dialect", "megatron-lm", "--", flag}).exit_code, 0);
  const Printed printed =
      cli({"check", "--dialect", "megatron-lm", "--json", "--version", "0.19.2", "--", flag});
  EXPECT_EQ(printed.exit_code, 1) << printed.out;
  EXPECT_EQ(finding(json::parse(printed.out), "RN01").at("first"), true);
}

TEST_F(CheckTest, TheArgumentsOfACaptureAreJudgedByWhatPyTorchRequires) {
  const auto run = [&](const char* arguments) {
    return cli({"check", file("capture.json", arguments)});
  };
  const Printed refused = run(R"({"call": "make_graphed_callables", "autocast": true})");
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_NE(refused.out.find("P06 error, the first one that upstream reaches"), std::string::npos)
      << refused.out;
  EXPECT_NE(refused.out.find("rejected by pytorch 2.11.0"), std::string::npos) << refused.out;
  const Printed accepted = run(R"({"call": "graph", "autocast": true})");
  EXPECT_EQ(accepted.exit_code, 0) << accepted.out;
  const Printed wrong_order = run(R"({"call": "te_make_graphed_callables", "_order": [1, 1, -1],
      "model_chunks": 1})");
  EXPECT_NE(wrong_order.out.find("T04 error"), std::string::npos) << wrong_order.out;
}

TEST_F(CheckTest, WhatCannotBeReadIsExitTwo) {
  const auto large = [&] {
    const std::string path = file("large.json", "{}");
    std::filesystem::resize_file(path, 40u << 20);
    return path;
  };

  struct Row {
    std::vector<std::string> arguments;
    const char* says;
  };
  const Row rows[] = {
      {{"check"}, "no configuration"},
      {{"check", "nowhere.json"}, "write a command line after `--`"},
      {{"check", file("c.json", "{\"a\": 1, \"a\": 2}")}, "twice"},
      {{"check", file("c.yaml", "a: 1\na: 2\n")}, "the key `a` is there twice"},
      {{"check", file("d.yaml", "a: [1, 2\n")}, "YAML that can't be read"},
      {{"check", file("u.yaml", "a: 1\nb: \xff\n")}, "invalid UTF-8\n  at    "},
      {{"check", file("u.json", "{\"a\": \"\xff\"}")}, "invalid UTF-8\n  at    "},
      {{"check", file("cycle.yaml", "a: &x [*x]\n")}, "too large or too deep"},
      {{"check", file("merge.yaml", "a: &x {b: 1, <<: *x}\n")}, "too large or too deep"},
      {{"check", file("bomb.yaml", bomb())}, "too large or too deep"},
      {{"check", file("deep.yaml", std::string(100'000, '['))}, "YAML that can't be read"},
      {{"check", file("deep.json", std::string(100'000, '['))}, "nested too deeply"},
      {{"check", file("two.yaml", "a: 1\n---\nb: 2\n")}, "more than one YAML document"},
      {{"check", file("key.yaml", "? [a, b]\n: 1\n")}, "a key that is no word"},
      {{"check", file("list.yaml", "- 1\n")}, "a configuration that is not an object"},
      {{"check", file("empty.json", "")}, "malformed JSON"},
      {{"check", file("number.json", "{\"num_layers\": 99999999999999999999}")}, "out of range"},
      {{"check", large()}, "a configuration file that is too large"},
      {{"check", "--dialect", "megatron-ml", "--", "--bf16"}, "did you mean `megatron-lm`?"},
      {{"check", "--arch", "hopper", "--", "--bf16"}, "write --arch sm_90 for a Hopper GPU"},
      {{"check", "--stack", "torch=2.11", "--", "--bf16"}, "`torch` is no stack variable"},
      {{"check", "--stack", "torch_version=new", "--", "--bf16"}, "a version such as 2.11.0"},
      {{"check", "--version", "soon", "--", "--bf16"}, "2026-08-22"},
      {{"check", "--version", "0.18.0", "--", "--bf16"}, "the release 0.19.2"},
      {{"check", "--env", "NCCL_ALGO", "--", "--bf16"}, "an empty value is written NAME="},
      {{"plan", "--", "--bf16"}, "`plan` does not take"},
  };
  for (const Row& row : rows) {
    const Printed printed = cli(row.arguments);
    EXPECT_EQ(printed.exit_code, 2) << row.says << printed.out;
    EXPECT_NE(printed.err.find(row.says), std::string::npos) << row.says << "\n" << printed.err;
  }
}

TEST_F(CheckTest, CoverageListsEveryRuleOfBothProjects) {
  const json rows = json::parse(cli({"rules", "--coverage", "--json"}).out);
  EXPECT_GE(rows.size(), 68u);
  for (const json& row : rows) {
    const std::string coverage = row.at("coverage");
    EXPECT_TRUE(coverage == "decided here" || coverage == "covered by" ||
                coverage == "loud, ends the rank" || coverage == "a fact, nothing to decide" ||
                coverage == "not covered")
        << row;
    EXPECT_NE(coverage, "not covered") << row.at("rule") << ": " << row.at("why");
  }
  EXPECT_EQ(cli({"rules", "R033", "--dialect", "megatron-lm"}).exit_code, 0);
  EXPECT_NE(cli({"rules", "--coverage"}).out.find("decided here"), std::string::npos);
}

TEST_F(CheckTest, TheChecksAndFaultsThatUpstreamRulesNameExist) {
  std::set<std::string> known;
  for (const json& row : json::parse(cli({"list", "checks", "--json"}).out)) {
    const std::string check = row.at("check");
    known.insert(check);
    known.insert(check.substr(0, check.find('.')));
  }
  for (const json& row : json::parse(cli({"list", "faults", "--json"}).out))
    known.insert(row.at("fault"));
  int named = 0;
  for (const json& row : json::parse(cli({"rules", "--coverage", "--json"}).out))
    for (const std::string id : row.at("covered_by")) {
      if (id.starts_with("test ")) continue;  // DialectRows.ATestThatARuleNamesExists
      ++named;
      EXPECT_TRUE(known.contains(id)) << row.at("rule") << " names " << id;
    }
  EXPECT_GT(named, 100);
}

TEST(YamlDocument, ScalarsAreWhatPythonReads) {
  const matrix::Document document =
      yaml_document("a: yes\nb: \"yes\"\nc: 1e-5\nd: 08x\ne:\nf: -3\ng: .5\nh: {i: [x, ~]}\n", "y");
  EXPECT_EQ(
      document.value.dump(),
      R"({"a":true,"b":"yes","c":1e-05,"d":"08x","e":null,"f":-3,"g":0.5,"h":{"i":["x",null]}})");
  EXPECT_EQ(document.at(document.offsets.at("/h/i/0")).line, 8);
}

}  // namespace
}  // namespace graphproof::cli

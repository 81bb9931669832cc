// Shards, their merging, and the pipelines that run them, with ranks and a judge that follow a
// script.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "launcher/cli/testing/command_under_test.h"
#include "launcher/cli/yaml_document.h"
#include "launcher/host/child.h"
#include "launcher/run/run_folder.h"
#include "matrix/case/case.h"
#include "reports/record/job/plan.h"
#include "reports/record/text/file.h"

namespace graphproof::cli {
namespace {

namespace fs = std::filesystem;

struct ShardTest : CommandUnderTest {
  ShardTest() {
    fs::create_directories(top / "bin");
    const fs::path fake = fs::read_symlink("/proc/self/exe").parent_path() / "graphproof_fake_rank";
    for (const char* program : {"graphproof-rank-sim", "graphproof-judge"})
      fs::create_symlink(fake, top / "bin" / program);
    fs::create_symlink(fake.parent_path() / "graphproof-start", top / "bin/graphproof-start");
  }
  void SetUp() override {
    ASSERT_FALSE(launcher::find_program("mpirun", launcher::own_environment()).empty())
        << "this machine has no mpirun: ./graphproof installs it";
  }

  Printed run(const std::string& folder, const std::string& shard,
              std::vector<std::string> more = {}) {
    std::vector<std::string> arguments = {
        "run",        "--profile",
        "smoke",      "--device",
        "sim",        "--run-dir",
        top / folder, "--json",
        "--where",    "tp == 1 and dp == 1 and impl in {none, manual} and not dropout"};
    if (!shard.empty()) arguments.insert(arguments.end(), {"--shard", shard});
    arguments.insert(arguments.end(), more.begin(), more.end());
    return cli(arguments);
  }
  std::vector<std::string> merge_of(std::initializer_list<const char*> runs) const {
    std::vector<std::string> words = {"merge", "--run-dir", top / "merged", "--json"};
    for (const char* run : runs) words.push_back(top / run);
    return words;
  }
  std::string plan(const std::string& folder) const {
    return record::read_text(top / folder / "plan.jsonl");
  }
  nlohmann::json cases(const std::string& folder) const {
    nlohmann::json seen;
    for (const auto& one : record::read_json(top / folder / "summary.json").at("cases"))
      seen[one.at("id").get<std::string>()] = one.at("verdict");
    return seen;
  }
};

TEST_F(ShardTest, MergedShardsAreTheWholeRun) {
  ASSERT_EQ(run("whole", "").exit_code, 4);
  for (const int number : {1, 2, 3})
    ASSERT_NE(run("s" + std::to_string(number), std::to_string(number) + "/3").exit_code, 2);
  const Printed merged = cli(merge_of({"s3", "s1", "s2"}));
  EXPECT_EQ(merged.exit_code, 4) << merged.err;
  EXPECT_EQ(plan("merged"), plan("whole"));
  EXPECT_EQ(cases("merged"), cases("whole"));
  const std::string id = record::plan_from(plan("merged"), "plan").front().id;
  const nlohmann::json context =
      record::read_json(top / "merged/cases" / id / "attempt-1/context.json");
  EXPECT_EQ(context.at("batch").get<std::string>().find("-s1"), 4u) << context.at("batch");
  EXPECT_TRUE(
      fs::exists(top / "merged/batches" / context.at("batch").get<std::string>() / "batch.json"));
  EXPECT_EQ(record::read_json(top / "s1/cases" / id / "attempt-1/context.json").at("batch"), "b001")
      << "the shard stays as it was";
  for (const char* verb : {"report", "status"})
    EXPECT_EQ(cli({verb, top / "merged"}).exit_code, std::string(verb) == "report" ? 4 : 0) << verb;
}

TEST_F(ShardTest, ShardsThatExpectOtherTimesAreMerged) {
  for (const int number : {1, 2}) run("s" + std::to_string(number), std::to_string(number) + "/2");
  // Each shard learns from the earlier runs of its machine how long a case takes.
  std::vector<record::PlanLine> learned = record::plan_from(plan("s2"), "plan");
  std::string text;
  for (record::PlanLine& line : learned) {
    line.expected_seconds += 1.25;
    text += record::to_line(line);
  }
  ASSERT_FALSE(learned.empty());
  std::ofstream(top / "s2/plan.jsonl") << text;
  EXPECT_EQ(cli(merge_of({"s1", "s2"})).exit_code, 4);
  EXPECT_EQ(record::read_json(top / "merged/run.json").at("plan_sha256"),
            matrix::sha256_hex(plan("merged")));
}

TEST_F(ShardTest, WhatIsNoPartitionOfOnePlanIsNotMerged) {
  for (const int number : {1, 2}) run("s" + std::to_string(number), std::to_string(number) + "/2");
  run("whole", "");
  run("seed", "2/2", {"--seed", "7"});
  fs::copy(top / "s2", top / "changed", fs::copy_options::recursive);
  std::string text = plan("changed");
  text.replace(text.find("\"why\":\""), 7, "\"why\":\"x");
  std::ofstream(top / "changed/plan.jsonl") << text;
  const struct {
    std::initializer_list<const char*> runs;
    const char* message;
  } rows[] = {
      {{"s1"}, "shard 2/2 is missing"},
      {{"s1", "s1"}, "shard 1/2 is there twice"},
      {{"s1", "whole"}, "is no shard"},
      {{"s1", "seed"}, "seed 7"},
      {{"s1", "changed"}, "do not make the plan that they are parts of"},
  };
  for (const auto& row : rows) {
    const Printed printed = cli(merge_of(row.runs));
    EXPECT_EQ(printed.exit_code, 2);
    EXPECT_NE(printed.err.find(row.message), std::string::npos) << printed.err;
  }
  EXPECT_FALSE(fs::exists(top / "merged")) << "nothing is written before it is known to be right";
}

TEST_F(ShardTest, AShardIsAPartOfAWhole) {
  for (const char* text : {"0/2", "3/2", "1", "1/", "/2", "1/2/3", "a/b", "-1/2"}) {
    const Printed printed = run("none", text);
    EXPECT_EQ(printed.exit_code, 2) << text;
    EXPECT_NE(printed.err.find("write --shard 1/4"), std::string::npos) << printed.err;
  }
}

TEST_F(ShardTest, NodesAreAskedForInAWayThatMakesSense) {
  const struct {
    std::vector<std::string> words;
    const char* message;
  } rows[] = {
      {{"--engine", "slrum"}, "did you mean `slurm`?"},
      {{"--launcher", "mpirun"}, "--launcher mpirun needs hosts"},
      {{"--hosts", "a,b"}, "add --launcher mpirun"},
      {{"--engine", "mpirun", "--hosts", "a,-x"}, "`-x` is no host"},
      {{"--partition", "gpu"}, "--partition goes with Slurm"},
      {{"--launcher", "mpirun", "--hosts", "a", "--slurm-arg=--mem=0"},
       "--slurm-arg goes with Slurm"},
      {{"--launcher", "slurm", "--nodes", "0"}, "--nodes must be at least 1"},
      {{"--launcher", "slurm", "--container-image", "a", "--apptainer", "b"},
       "two container images"},
      {{"--launcher", "slurm", "--time-limit", "4 hours"}, "write it as 10s"},
      {{"--launcher", "slurm", "--env-file", "/nowhere"}, "no /nowhere"},
      {{"--launcher", "slurm", "--device", "auto"}, "--device has to name the device of the nodes"},
  };
  for (const auto& row : rows) {
    std::vector<std::string> arguments = {"run", "--profile", "smoke"};
    if (std::ranges::find(row.words, "--device") == row.words.end())
      arguments.insert(arguments.end(), {"--device", "sim"});
    arguments.insert(arguments.end(), row.words.begin(), row.words.end());
    const Printed printed = cli(arguments);
    EXPECT_EQ(printed.exit_code, 2) << row.message;
    EXPECT_NE(printed.err.find(row.message), std::string::npos) << printed.err;
  }
  EXPECT_FALSE(fs::exists(top / "runs"));
}

struct CiTest : CommandUnderTest {};

TEST_F(CiTest, PipelinesAreYamlThatRunsEveryShardAndMergesThem) {
  const Printed gitlab =
      cli({"ci", "gitlab", "--shards", "3", "--profile", "pairwise", "--budget", "4h"});
  ASSERT_EQ(gitlab.exit_code, 0) << gitlab.err;
  nlohmann::json file = nlohmann::json(yaml_document(gitlab.out, "gitlab").value);
  EXPECT_EQ(file.at("graphproof").at("parallel"), 3);
  EXPECT_EQ(file.at("graphproof").at("script").at(0),
            "./graphproof run --profile pairwise --device cuda --shard "
            "$CI_NODE_INDEX/$CI_NODE_TOTAL --run-dir shards/$CI_NODE_INDEX --budget 4h");
  EXPECT_EQ(file.at("graphproof-report").at("needs").at(0), "graphproof");
  EXPECT_EQ(file.at("graphproof-report").at("when"), "always")
      << "a failed shard is part of the report";
  const Printed github = cli({"ci", "github", "--shards", "2"});
  file = yaml_document(github.out, "github").value;
  EXPECT_EQ(file.at("jobs").at("run").at("strategy").at("matrix").at("shard"),
            nlohmann::json({1, 2}));
  EXPECT_EQ(file.at("jobs").at("run").at("strategy").at("fail-fast"), false);
  EXPECT_EQ(file.at("jobs").at("run").at("steps").at(1).at("run"),
            "./graphproof run --profile nightly --device cuda --shard ${{ matrix.shard }}/2 "
            "--run-dir shards/${{ matrix.shard }}");
  EXPECT_EQ(file.at("jobs").at("report").at("needs"), "run");
  const Printed json = cli({"ci", "github", "--shards", "2", "--json"});
  EXPECT_EQ(nlohmann::json::parse(json.out).at("text"), github.out);
}

TEST_F(CiTest, TheSlurmScriptIsOneThatAShellReads) {
  const Printed slurm = cli({"ci", "slurm", "--shards", "5"});
  ASSERT_EQ(slurm.exit_code, 0) << slurm.err;
  EXPECT_NE(slurm.out.find("--array=1-5"), std::string::npos);
  EXPECT_NE(slurm.out.find("--dependency=afterany:"), std::string::npos);
  const std::string script = file("night.sh", slurm.out);
  EXPECT_EQ(launcher::run_to_end({{"bash", "-n", script}, launcher::own_environment()}, 5000).error,
            "");
  // With an sbatch that only writes down its arguments.
  fs::create_directories(top / "fake");
  std::ofstream(top / "fake/sbatch")
      << "#!/bin/sh\nprintf '%s\\n' \"$@\" >>" << (top / "sbatch.log").string() << "\necho 17\n";
  fs::permissions(top / "fake/sbatch", fs::perms::owner_all);
  launcher::Environment environment = launcher::own_environment();
  environment["PATH"] = (top / "fake").string() + ":" + environment["PATH"];
  environment["PWD"] = top;
  const auto run = launcher::run_to_end(
      {{"bash", "-c", "cd " + top.string() + " && bash night.sh --partition=gpu"}, environment},
      5000);
  EXPECT_EQ(run.exit, launcher::Exit{}) << run.error;
  const std::string submitted = record::read_text(top / "sbatch.log");
  EXPECT_NE(submitted.find("--shard $SLURM_ARRAY_TASK_ID/5"), std::string::npos) << submitted;
  EXPECT_NE(submitted.find("--partition=gpu"), std::string::npos) << submitted;
  EXPECT_NE(submitted.find("--dependency=afterany:17"), std::string::npos) << submitted;
}

TEST_F(CiTest, WhatIsNoWordOrNoNumberOfShardsIsRefused) {
  for (const std::vector<std::string>& words : {std::vector<std::string>{"ci", "jenkins"},
                                                {"ci", "gitlab", "--shards", "0"},
                                                {"ci", "gitlab", "--shards", "257"},
                                                {"ci", "gitlab", "--profile", "x; rm -rf /"},
                                                {"ci", "github", "--tag", "a]"}})
    EXPECT_EQ(cli(words).exit_code, 2) << words.back();
}

}  // namespace
}  // namespace graphproof::cli

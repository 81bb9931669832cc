// The verb shrink, on runs of ranks that follow a script. Cases fail that have both of two axis
// values.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <set>

#include "launcher/cli/shrink_jobs.h"
#include "launcher/cli/testing/command_under_test.h"
#include "launcher/host/child.h"
#include "matrix/plan/matrix_file.h"
#include "reports/record/schema/violations.h"
#include "reports/record/text/file.h"

namespace graphproof::cli {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using shrink::Outcome;

constexpr const char* kMatrix = R"J({"schema": "graphproof-matrix/1",
  "axes": {"impl": ["none", "manual", "full_iteration"], "microbatches": [1, 2, 4],
           "dropout": [false, true],
           "optimizer": ["sgd", "adam"], "precision": ["fp32", "bf16"], "qkv_bias": [false, true],
           "layers": [1, 2]},
  "require": [{"id": "X1", "expr": "not (impl == none and precision == bf16)", "why": "a test"}],
  "profiles": {"pairs": {"cover": 2, "steps": 0}}})J";

struct ShrinkVerbTest : CommandUnderTest {
  ShrinkVerbTest() {
    fs::create_directories(top / "bin");
    const fs::path fake = fs::read_symlink("/proc/self/exe").parent_path() / "graphproof_fake_rank";
    for (const char* program : {"graphproof-rank-sim", "graphproof-judge"})
      fs::create_symlink(fake, top / "bin" / program);
    fs::create_symlink(fake.parent_path() / "graphproof-start", top / "bin/graphproof-start");
  }
  ~ShrinkVerbTest() override {
    for (const char* name : {"GRAPHPROOF_FAKE", "GRAPHPROOF_FAKE_LUCK"}) unsetenv(name);
  }

  /// Makes a run in which exactly the cases fail that have all of these values. Returns RUN/CASE of
  /// one of them.
  std::string failing_run(const char* values) {
    setenv("GRAPHPROOF_FAKE", (std::string("meet ") + values).c_str(), 1);
    const Printed run =
        cli({"run", "--matrix", file("matrix.json", kMatrix), "--device", "sim", "--json"});
    EXPECT_EQ(run.exit_code, 1) << run.err;
    const json summary = json::parse(run.out);
    for (const json& one : summary.at("cases"))
      if (one.at("verdict").get<std::string>().starts_with("fail."))
        return "latest/" + one.at("id").get<std::string>();
    ADD_FAILURE() << "no case failed";
    return "latest/";
  }
};

bool no_mpirun() { return launcher::find_program("mpirun", launcher::own_environment()).empty(); }

TEST_F(ShrinkVerbTest, TheTwoValuesThatMeetAreFoundAndTheAnswerIsOfUse) {
  ASSERT_FALSE(no_mpirun()) << "this machine has no mpirun: ./graphproof installs it";
  const std::string failing = failing_run("impl=manual,dropout=true");
  const Printed printed = cli({"shrink", failing, "--json"});
  ASSERT_EQ(printed.exit_code, 0) << printed.err;
  const json found = json::parse(printed.out);
  for (const std::string& violation : record::violations("shrink", found))
    ADD_FAILURE() << violation;
  EXPECT_EQ(found.at("state"), "confirmed");
  EXPECT_EQ(found.at("combination").at("axes"), json({{"impl", "manual"}, {"dropout", true}}));
  EXPECT_EQ(found.at("combination").at("expr"), "impl == \"manual\" and dropout == true");
  std::set<std::string> irrelevant = found.at("irrelevant");
  EXPECT_EQ(irrelevant, (std::set<std::string>{"microbatches", "layers", "precision", "optimizer",
                                               "qkv_bias"}));
  EXPECT_GE(found.at("probability"), 0.97);
  EXPECT_LE(found.at("jobs").size(), 16u);
  EXPECT_EQ(found.at("run_evidence").at("matrix_file"), true);
  EXPECT_EQ(found.at("evidence").at(0).at("passed"), 0) << "a case that has the combination passed";
  for (std::size_t i = 1; i < found.at("evidence").size(); ++i)
    EXPECT_EQ(found.at("evidence").at(i).at("failed"), 0);
  EXPECT_EQ(found.at("smallest").at("name"), "impl=manual,layers=1,dropout=true,steps=4");

  // The entry can be pasted, and excuses exactly the failing cases.
  std::string with_issue = kMatrix;
  with_issue.replace(with_issue.find("\"profiles\""), 0,
                     "\"known_issues\": [" + found.at("known_issue").dump() + "], ");
  const matrix::MatrixFile pasted = matrix::parse_matrix_file(
      with_issue, "pasted.json", catalogue, [](const std::string&) { return std::string(); });
  ASSERT_EQ(pasted.known_issues.size(), 1u);
  EXPECT_EQ(pasted.known_issues[0].expect, "fail.numerics");
  const matrix::Machine machine;
  const auto excuses = [&](const char* name) {
    return pasted.known_issues[0].when.holds(matrix::case_from_name(catalogue.axes, name, "test"),
                                             machine) == matrix::Truth::yes;
  };
  EXPECT_TRUE(excuses("impl=manual,dropout=true,microbatches=2"));
  EXPECT_FALSE(excuses("impl=manual,microbatches=2"));
  EXPECT_FALSE(excuses("impl=full_iteration,dropout=true"));

  // The same command again reads the jobs that it ran before and prints the same.
  const fs::path jobs =
      fs::canonical(top / "runs" / "latest") / found.at("folder").get<std::string>();
  const auto rounds = std::distance(fs::directory_iterator(jobs), fs::directory_iterator());
  setenv("GRAPHPROOF_FAKE", "good", 1);
  EXPECT_EQ(json::parse(cli({"shrink", failing, "--json"}).out), found);
  EXPECT_EQ(std::distance(fs::directory_iterator(jobs), fs::directory_iterator()), rounds);
  EXPECT_EQ(json(record::read_json(jobs / "shrink.json")), found);
  const Printed text = cli({"shrink", failing});
  for (const char* part :
       {"signature    fail.numerics  D01.lockstep",
        "combination  impl=manual,dropout=true   [confirmed", "all but impl",
        "known issue  {\"id\":\"shrink-",
        "reproduce    ./graphproof repro impl=manual,layers=1,dropout=true,steps=4 --device sim"})
    EXPECT_NE(text.out.find(part), std::string::npos) << part << "\n" << text.out;

  // The printed command, without ./graphproof, reproduces the failure.
  setenv("GRAPHPROOF_FAKE", "meet impl=manual,dropout=true", 1);
  EXPECT_EQ(
      cli({"repro", "impl=manual,layers=1,dropout=true,steps=4", "--device", "sim"}).exit_code, 1);
}

TEST_F(ShrinkVerbTest, AFailureThatComesAndGoesIsLocatedAndCalledFlaky) {
  ASSERT_FALSE(no_mpirun()) << "this machine has no mpirun: ./graphproof installs it";
  const std::string failing = failing_run("impl=manual,dropout=true");
  setenv("GRAPHPROOF_FAKE_LUCK", "50", 1);
  const Printed printed = cli({"shrink", failing, "--json", "--jobs", "3"});
  ASSERT_EQ(printed.exit_code, 0) << printed.err;
  const json found = json::parse(printed.out);
  EXPECT_EQ(found.at("combination").at("axes"), json({{"impl", "manual"}, {"dropout", true}}))
      << printed.err;
  EXPECT_GT(found.at("pass_triggered"), 0.05) << printed.err;
}

TEST_F(ShrinkVerbTest, AFailureThatDoesNotComeAgainIsNotLocated) {
  ASSERT_FALSE(no_mpirun()) << "this machine has no mpirun: ./graphproof installs it";
  const std::string failing = failing_run("impl=manual,dropout=true");
  setenv("GRAPHPROOF_FAKE", "good", 1);
  const Printed printed = cli({"shrink", failing, "--assume-noise", "0,0"});
  EXPECT_EQ(printed.exit_code, 4);
  EXPECT_NE(printed.out.find("it did not fail again: nothing can be located"), std::string::npos)
      << printed.out;
  EXPECT_EQ(printed.out.find("known issue"), std::string::npos) << printed.out;
}

TEST_F(ShrinkVerbTest, WhatCanNotBeAskedIsRefusedBeforeAnythingRuns) {
  struct Row {
    std::vector<std::string> arguments;
    const char* says;
  };
  const Row rows[] = {
      {{"shrink", "impl=manual,tp=2"}, "graphproof repro impl=manual,tp=2"},
      {{"shrink", "latest/abc", "--assume-noise", "0.3"}, "--assume-noise 0.3,0.02"},
      {{"shrink", "latest/abc", "--assume-noise", "1.5,0"}, "shares from 0 to below 1"},
      {{"shrink", "latest/abc", "--jobs", "0"}, "1 or more"},
      {{"shrink", "latest/abc", "--budget", "4 hours"}, "write it as 10s"},
  };
  for (const Row& row : rows) {
    const Printed printed = cli(row.arguments);
    EXPECT_EQ(printed.exit_code, 2);
    EXPECT_NE(printed.err.find(row.says), std::string::npos) << printed.err;
  }
  EXPECT_FALSE(fs::exists(top / "runs"));
}

TEST_F(ShrinkVerbTest, ACaseThatPassedIsRefused) {
  ASSERT_FALSE(no_mpirun()) << "this machine has no mpirun: ./graphproof installs it";
  failing_run("impl=manual,dropout=true");
  const json summary = record::read_json(top / "runs" / "latest" / "summary.json");
  for (const json& one : summary.at("cases"))
    if (!one.at("verdict").get<std::string>().starts_with("fail.")) {
      const Printed printed = cli({"shrink", "latest/" + one.at("id").get<std::string>()});
      EXPECT_EQ(printed.exit_code, 2);
      EXPECT_NE(printed.err.find("did not fail"), std::string::npos) << printed.err;
      return;
    }
}

reports::CaseResult result_of(const char* verdict, const char* observed,
                              std::map<std::string, record::Result> checks,
                              const char* failing = "") {
  reports::CaseResult result;
  result.record.verdict = *record::Verdict::from(verdict);
  result.record.observed = *record::Verdict::from(observed);
  result.checks = std::move(checks);
  if (*failing != '\0')
    result.record.failing = {{failing, 0, {"a step differs", "1", "0", "", "look"}}};
  return result;
}

TEST(OutcomeOfJobTest, OnlyTheSameFailureIsOneAndOnlyItsCheckIsAPass) {
  using record::Result;
  const reports::Signature signature{"fail.numerics", "D01.lockstep", "a step differs"};
  struct Row {
    reports::CaseResult result;
    Outcome outcome;
  };
  const Row rows[] = {
      {result_of("fail.numerics", "fail.numerics", {}, "D01.lockstep"), Outcome::fail},
      {result_of("xfail", "fail.numerics", {}, "D01.lockstep"), Outcome::fail},
      {result_of("pass.killed", "fail.numerics", {}, "D01.lockstep"), Outcome::fail},
      {result_of("fail.numerics", "fail.numerics", {}, "D12.kept_losses"), Outcome::invalid},
      {result_of("fail.crash.signal", "fail.crash.signal", {}), Outcome::invalid},
      {result_of("pass", "pass", {{"D01.lockstep", Result::pass}}), Outcome::pass},
      {result_of("pass", "pass", {{"D01.lockstep", Result::not_applicable}}), Outcome::pass},
      {result_of("unexercised", "unexercised", {{"D01.lockstep", Result::pass}}), Outcome::pass},
      {result_of("unexercised", "unexercised", {{"D01.lockstep", Result::unexercised}}),
       Outcome::invalid},
      {result_of("pass", "pass", {}), Outcome::invalid},
      {result_of("pass.rejected", "pass.rejected", {{"D01.lockstep", Result::pass}}),
       Outcome::invalid},
      {result_of("infra.gpu", "infra.gpu", {{"D01.lockstep", Result::pass}}), Outcome::invalid},
      {result_of("infra.launch", "infra.launch", {}), Outcome::invalid},
      {result_of("skipped.gpus", "skipped.gpus", {}), Outcome::invalid},
      {result_of("not_run", "not_run", {}), Outcome::invalid},
  };
  for (const Row& row : rows)
    EXPECT_EQ(outcome_of(row.result, signature), row.outcome)
        << row.result.record.verdict.text() << " " << row.result.record.observed.text();
  // A failure that is not one of a check: a case that passed did not have it.
  EXPECT_EQ(
      outcome_of(result_of("pass", "pass", {}), {"fail.hang.replay", "", "rank # is missing"}),
      Outcome::pass);
}

}  // namespace
}  // namespace graphproof::cli

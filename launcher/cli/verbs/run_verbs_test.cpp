// The verbs that start ranks, with a rank program and a judge that follow a script, on the
// simulated device. Every case ends `unexercised` (exit code 4), because this judge has only one
// check.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <fstream>

#include "launcher/cli/testing/command_under_test.h"
#include "launcher/host/child.h"
#include "launcher/host/run_lock.h"
#include "launcher/run/run_folder.h"
#include "reports/record/job/plan.h"
#include "reports/record/text/file.h"

namespace graphproof::cli {
namespace {

namespace fs = std::filesystem;

nlohmann::json json_of(const Printed& printed) { return nlohmann::json::parse(printed.out); }

struct RunVerbsTest : CommandUnderTest {
  RunVerbsTest() {
    fs::create_directories(top / "bin");
    const fs::path fake = fs::read_symlink("/proc/self/exe").parent_path() / "graphproof_fake_rank";
    for (const char* program : {"graphproof-rank-sim", "graphproof-judge"})
      fs::create_symlink(fake, top / "bin" / program);
    fs::create_symlink(fake.parent_path() / "graphproof-start", top / "bin/graphproof-start");
  }
  ~RunVerbsTest() override { unsetenv("GRAPHPROOF_FAKE_DRIVER"); }
  void SetUp() override {
    ASSERT_FALSE(launcher::find_program("mpirun", launcher::own_environment()).empty())
        << "this machine has no mpirun: ./graphproof installs it";
  }

  /// A few cases of one rank each.
  Printed run(std::vector<std::string> more = {}) {
    std::vector<std::string> arguments = {
        "run",
        "--profile",
        "smoke",
        "--device",
        "sim",
        "--where",
        "tp == 1 and dp == 1 and impl in {none, manual} and not dropout",
        "--json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return cli(arguments);
  }
  fs::path latest() const { return fs::canonical(top / "runs" / "latest"); }
  nlohmann::json run_json() const { return record::read_json(latest() / "run.json"); }
  std::vector<record::PlanLine> plan() const {
    return record::plan_from(record::read_text(latest() / "plan.jsonl"), "plan.jsonl");
  }
};

TEST_F(RunVerbsTest, IsolationIsAskedForAndRecorded) {
  const Printed batch = run();
  ASSERT_EQ(batch.exit_code, 4) << batch.err;
  EXPECT_EQ(run_json().at("options").at("isolation"), "planned");
  ASSERT_GE(plan().size(), 2u);
  const Printed process = run({"--isolation", "process", "--budget", "10m", "--max-fail", "3"});
  ASSERT_EQ(process.exit_code, 4) << process.err;
  for (const auto& one : json_of(process).at("cases")) EXPECT_EQ(one.at("isolation"), "process");
  EXPECT_EQ(run_json().at("options").at("isolation"), "process");
  EXPECT_EQ(run_json().at("options").at("budget_ms"), 600000);
  EXPECT_EQ(run_json().at("options").at("max_fail"), 3);
  EXPECT_EQ(run_json().at("plan_sha256").get<std::string>().size(), 64u);
}

TEST_F(RunVerbsTest, PriceConfirmationsAndGpuMinutesAreAskedForAndRecorded) {
  const Printed first = run({"--confirm", "2", "--max-gpu-minutes", "30", "--cold"});
  ASSERT_EQ(first.exit_code, 4) << first.err;
  EXPECT_EQ(run_json().at("options").at("confirm"), 2);
  EXPECT_EQ(run_json().at("options").at("max_gpu_ms"), 1800000);
  EXPECT_NE(first.err.find("rank-minutes; at most 30.0, "), std::string::npos) << first.err;
}

TEST_F(RunVerbsTest, RerunTakesCasesByAnExpression) {
  run();
  const std::string parent = run_json().at("run_id");
  const Printed again = cli({"rerun", parent, "--where", "impl == none", "--json"});
  ASSERT_EQ(again.exit_code, 4) << again.err;
  for (const record::PlanLine& line : plan()) EXPECT_EQ(line.axes.at("impl"), "none");
  EXPECT_EQ(cli({"rerun", parent, "--where", "impl == nonsense"}).exit_code, 2);
  const Printed none = cli({"rerun", parent, "--where", "impl == none", "--failed"});
  EXPECT_EQ(none.exit_code, 4);
  EXPECT_NE(none.err.find("has no such case"), std::string::npos)
      << "together with --failed it narrows: " << none.err;
}

TEST_F(RunVerbsTest, StatusIsWatchedUntilTheRunHasEnded) {
  run();
  const Printed watched = cli({"status", "--watch", "--json"});
  EXPECT_EQ(watched.exit_code, 0);
  EXPECT_EQ(json_of(watched).at("state"), "finished") << "one line, because it has ended";
}

TEST_F(RunVerbsTest, DoctorLooksAtThisMachine) {
  const Printed doctor = cli({"doctor", "--device", "sim", "--json"});
  EXPECT_NE(doctor.exit_code, 2) << doctor.err;
  EXPECT_EQ(json_of(doctor).at("schema"), "graphproof-doctor/1");
  EXPECT_NE(cli({"doctor", "--device", "sim"}).out.find("mpirun"), std::string::npos);
  EXPECT_NE(doctor.out.find("4 ranks, 64 MiB: 0.42 ms, 240.2 GB/s"), std::string::npos)
      << doctor.out;
  setenv("GRAPHPROOF_FAKE_NO_SUM", "1", 1);
  const Printed ill = cli({"doctor", "--device", "sim"});
  unsetenv("GRAPHPROOF_FAKE_NO_SUM");
  EXPECT_EQ(ill.exit_code, 3);
  EXPECT_NE(ill.out.find("failure  all_reduce"), std::string::npos) << ill.out;
}

TEST_F(RunVerbsTest, TheStackThatRanksReportCantControlTheTerminal) {
  setenv("GRAPHPROOF_FAKE_DRIVER", "580\x1b[2J", 1);
  const Printed doctor = cli({"doctor", "--device", "sim"});
  unsetenv("GRAPHPROOF_FAKE_DRIVER");
  EXPECT_NE(doctor.out.find("driver 580\\x1b[2J"), std::string::npos) << doctor.out;
  EXPECT_EQ(doctor.out.find('\x1b'), std::string::npos);
}

TEST_F(RunVerbsTest, SelftestReportsADefectThatItsJudgeMisses) {
  const Printed selftest = cli({"selftest", "--device", "sim", "--json"});
  EXPECT_EQ(selftest.exit_code, 1) << "the judge of these tests sees nothing: " << selftest.err;
  EXPECT_GT(json_of(selftest).at("missed"), 0);
}

TEST_F(RunVerbsTest, FaultsKeepTheirIsolation) {
  const Printed printed = cli({"run", "--profile", "faults", "--device", "sim", "--where",
                               "fault == M23", "--isolation", "process", "--json"});
  ASSERT_NE(printed.exit_code, 2) << printed.err;
  int faults = 0;
  for (const record::PlanLine& line : plan()) {
    if (line.expect.kind != "fault") continue;
    EXPECT_EQ(line.isolation, catalogue.faults.find(line.expect.fault)->isolation);
    ++faults;
  }
  EXPECT_GE(faults, 1);
}

struct RefusedOptions {
  std::vector<std::string> arguments;
  const char* says;
};

TEST_F(RunVerbsTest, WrongOptionsStartNothing) {
  const RefusedOptions rows[] = {
      {{"run", "--device", "sim", "--isolation", "proces"}, "did you mean `process`?"},
      {{"run", "--device", "sim", "--budget", "4 hours"}, "write it as 10s"},
      {{"run", "--device", "sim", "--max-fail", "-1"}, "leave it out for no bound"},
      {{"resume"}, "start one: graphproof run --profile smoke"},
      {{"rerun", "latest"}, "rerun latest --failed"},
      {{"rerun", "latest", "--verdict", "fail.hangs"}, "graphproof list cases"},
  };
  for (const RefusedOptions& row : rows) {
    const Printed printed = cli(row.arguments);
    EXPECT_EQ(printed.exit_code, 2) << row.arguments[0];
    EXPECT_NE(printed.err.find(row.says), std::string::npos) << printed.err;
  }
  EXPECT_FALSE(fs::exists(top / "runs"));
}

TEST_F(RunVerbsTest, AFinishedRunIsNotResumedAndKeepsItsExitCode) {
  ASSERT_EQ(run().exit_code, 4);
  const std::string journal = record::read_text(latest() / "journal.jsonl");
  const Printed printed = cli({"resume"});
  EXPECT_EQ(printed.exit_code, 4);
  EXPECT_NE(printed.err.find("is finished: there is nothing to resume"), std::string::npos)
      << printed.err;
  EXPECT_EQ(record::read_text(latest() / "journal.jsonl"), journal);
}

TEST_F(RunVerbsTest, AKilledRunSaysWhatResumeWouldDoAndResumesTheRestAlone) {
  ASSERT_EQ(run().exit_code, 4);
  // The state after a kill: the last record is incomplete and there is no summary.
  std::string journal = record::read_text(latest() / "journal.jsonl");
  const std::size_t whole = journal.rfind('\n', journal.size() - 2) + 1;
  std::ofstream(latest() / "journal.jsonl") << journal.substr(0, whole + 20);
  fs::remove(latest() / "summary.json");
  const Printed status = cli({"status", "--json"});
  ASSERT_EQ(status.exit_code, 0) << status.err;
  EXPECT_EQ(json_of(status).at("state"), "ended early");
  const int cases = static_cast<int>(plan().size());
  EXPECT_EQ(json_of(status).at("resume").at("kept"), cases - 1);
  EXPECT_EQ(json_of(status).at("resume").at("judge"), 1);
  EXPECT_EQ(json_of(status).at("resume").at("run"), 0);
  EXPECT_NE(cli({"status"}).out.find("would keep"), std::string::npos);
  const Printed resumed = cli({"resume", "--json"});
  EXPECT_EQ(resumed.exit_code, 4) << resumed.err;
  EXPECT_EQ(json_of(resumed).at("ending"), "finished");
  EXPECT_NE(resumed.err.find("torn"), std::string::npos) << resumed.err;
  EXPECT_EQ(record::read_text(latest() / "journal.jsonl").size(), journal.size())
      << "the same record once more";
}

TEST_F(RunVerbsTest, ARunIsResumedOnlyWithItsOwnPlanOnItsOwnStack) {
  ASSERT_EQ(run().exit_code, 4);
  fs::remove(latest() / "summary.json");
  setenv("GRAPHPROOF_FAKE_DRIVER", "999.1", 1);
  Printed printed = cli({"resume"});
  EXPECT_EQ(printed.exit_code, 2);
  EXPECT_NE(printed.err.find("driver 999.1"), std::string::npos) << printed.err;
  EXPECT_NE(printed.err.find("one run is a result about one stack"), std::string::npos)
      << printed.err;
  unsetenv("GRAPHPROOF_FAKE_DRIVER");
  std::string text = record::read_text(latest() / "plan.jsonl");
  text.replace(text.find("\"why\":\""), 7, "\"why\":\"x");
  std::ofstream(latest() / "plan.jsonl") << text;
  printed = cli({"resume"});
  EXPECT_EQ(printed.exit_code, 2);
  EXPECT_NE(printed.err.find("has changed since the run began"), std::string::npos) << printed.err;
}

TEST_F(RunVerbsTest, ARunWhoseLauncherLivesIsNotResumedAndItsStatusNamesIt) {
  ASSERT_EQ(run().exit_code, 4);
  fs::remove(latest() / "summary.json");
  const launcher::RunLock lock(latest());
  const Printed printed = cli({"resume"});
  EXPECT_EQ(printed.exit_code, 2);
  EXPECT_NE(printed.err.find("process " + std::to_string(getpid())), std::string::npos)
      << printed.err;
  const auto example =
      fs::path(std::getenv("GRAPHPROOF_SOURCE")) / "reports/record/schema/examples/live.json";
  fs::copy_file(example, latest() / "live.json");
  const nlohmann::json status = json_of(cli({"status", "--json"}));
  EXPECT_EQ(status.at("state"), "running");
  EXPECT_NE(status.at("launcher").get<std::string>().find(std::to_string(getpid())),
            std::string::npos);
  EXPECT_EQ(status.at("live").at("running").at(0).at("ranks").at(0).at("phase"), "replay");
  const std::string text = cli({"status"}).out;
  EXPECT_NE(text.find("rank 0  replay"), std::string::npos) << text;
  EXPECT_NE(text.find("heartbeat"), std::string::npos) << text;
  EXPECT_NE(text.find("0:42 left"), std::string::npos) << text;
}

TEST_F(RunVerbsTest, ARerunIsANewRunThatNamesItsParent) {
  ASSERT_EQ(run().exit_code, 4);
  const std::string parent = run_json().at("run_id");
  const auto lines = plan();
  ASSERT_GE(lines.size(), 2u);
  const Printed none = cli({"rerun", parent, "--failed"});
  EXPECT_EQ(none.exit_code, 4);
  EXPECT_NE(none.err.find("has no such case: nothing is run"), std::string::npos) << none.err;
  const Printed one = cli({"rerun", parent, lines[1].id.substr(0, 10), "--json"});
  EXPECT_EQ(one.exit_code, 4) << one.err;
  ASSERT_EQ(json_of(one).at("cases").size(), 1u);
  EXPECT_EQ(json_of(one).at("cases").at(0).at("id"), lines[1].id);
  EXPECT_EQ(run_json().at("parent"), parent);
  EXPECT_NE(run_json().at("run_id"), parent);
  const Printed all =
      cli({"rerun", parent, "--verdict", "unexercised", "--isolation", "process", "--json"});
  EXPECT_EQ(json_of(all).at("cases").size(), lines.size());
  EXPECT_EQ(json_of(all).at("cases").at(0).at("isolation"), "process");
}

TEST_F(RunVerbsTest, ReproAndExplainNameTheFirstDivergentTensor) {
  setenv("GRAPHPROOF_FAKE", "wrong replay 1", 1);
  const Printed printed = cli({"repro", "impl=manual,tp=2", "--device", "sim"});
  unsetenv("GRAPHPROOF_FAKE");
  const std::string named =
      "first divergent tensor: rank 1, step 3, microbatch 1, layer 0, attn, forward, aten::mul, "
      "element 17";
  EXPECT_NE(printed.out.find("\n" + named), std::string::npos) << printed.out << printed.err;
  const std::string of_the_run = "latest/" + plan().front().id;
  EXPECT_NE(cli({"explain", of_the_run}).out.find("\n" + named), std::string::npos);
  EXPECT_EQ(json_of(cli({"explain", of_the_run, "--json"}))
                .at("divergence")
                .get<std::string>()
                .rfind("rank 1, step 3", 0),
            0u);
}

}  // namespace
}  // namespace graphproof::cli

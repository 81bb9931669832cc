// The verb bisect with a stand-in for graphproof, which decides from the environment that it gets.
#include <gtest/gtest.h>
#include <stdlib.h>

#include "launcher/cli/bisect/stack_choice.h"
#include "launcher/cli/testing/command_under_test.h"
#include "reports/record/run/record.h"
#include "reports/record/text/file.h"

namespace graphproof::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kCase = "impl=manual,tp=2";

struct BisectTest : CommandUnderTest {
  BisectTest() {
    fs::create_directories(top / "bin");
    for (const char* folder : {"nccl-a", "nccl-b", "cuda-b"}) fs::create_directory(top / folder);
    std::ofstream(top / "nccl-a/libnccl.so.2");
    std::ofstream(top / "nccl-b/libnccl.so.2");
    std::ofstream(top / "cuda-b/libcuda.so.1");
    fs::create_directories(top / "venv/lib/python3.11/site-packages/torch/lib");
    fs::current_path(top);
    for (const char* verdict : {"pass", "fail.numerics", "infra.gpu"}) {
      record::Record record;
      record.run_id = "20260101-000000-abcd";
      record.case_id = json(cli({"case", kCase, "--json"}).out).at("id");
      record.name = kCase;
      record.ranks = 2;
      record.verdict = record.observed = record::Verdict::from(verdict).value();
      record.reason = "a stand-in";
      file(std::string("record-") + verdict, record::to_line(record));
    }
  }
  ~BisectTest() override { fs::current_path("/"); }

  static nlohmann::json json(const std::string& text) { return nlohmann::json::parse(text); }

  /// graphproof: `decide` sets $verdict.
  void stand_in(const std::string& decide) const {
    std::ofstream(top / "bin/graphproof")
        << "#!/bin/sh\n"
           "echo \"$* LD=$LD_LIBRARY_PATH PY=$GRAPHPROOF_PYTHON X=$NCCL_X\" >>'" +
               (top / "calls").string() +
               "'\n"
               "while [ \"$1\" != --run-dir ]; do shift; done\n"
               "verdict=pass\n" +
               decide + "\nmkdir -p \"$2\"; cp '" + (top / "record-").string() +
               "'$verdict \"$2/journal.jsonl\"\n";
    fs::permissions(top / "bin/graphproof", fs::perms::owner_all);
  }
  std::string calls() const { return record::read_text(top / "calls"); }
  int count() const {
    const std::string all = calls();
    return static_cast<int>(std::count(all.begin(), all.end(), '\n'));
  }
  Printed bisect(std::vector<std::string> more = {}) const {
    std::vector<std::string> arguments = {"bisect",   "a.json", "b.json", kCase,
                                          "--device", "sim",    "--json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return cli(arguments);
  }
  void stacks(const std::string& a, const std::string& b) const {
    file("a.json", a);
    file("b.json", b);
  }
};

TEST_F(BisectTest, TheComponentIsNamedAndEveryStackHasItsLibrariesAndVariables) {
  stacks(
      R"({"nccl": "nccl-a", "environment": {"NCCL_X": "0"}})",
      R"({"nccl": "nccl-b", "torch": "venv", "driver": "cuda-b", "environment": {"NCCL_X": "1"}})");
  stand_in("case $LD_LIBRARY_PATH in *nccl-b*) verdict=fail.numerics;; esac");
  const Printed printed = bisect();
  ASSERT_EQ(printed.exit_code, 0) << printed.err << printed.out;
  EXPECT_EQ(json(printed.out).at("components"), nlohmann::json({"nccl"}));
  EXPECT_EQ(count(), 6) << "A, B, and four components alone";
  const std::string said = calls();
  EXPECT_NE(said.find("LD=" + (top / "nccl-a").string() + " PY= X=0"), std::string::npos) << said;
  EXPECT_NE(said.find("LD=" + (top / "cuda-b").string() + ":" + (top / "nccl-b").string() + ":" +
                      (top / "venv/lib/python3.11/site-packages/torch/lib").string() +
                      " PY=" + (top / "venv/bin/python3").string() + " X=1"),
            std::string::npos)
      << said;
  EXPECT_NE(said.find("repro impl=manual,tp=2 --device sim"), std::string::npos) << said;
}

TEST_F(BisectTest, WhatIsKnownIsNotRunAgainAndNoAnswerIsTriedAgain) {
  stacks(R"({"nccl": "nccl-a"})", R"({"nccl": "nccl-b", "environment": {"NCCL_X": "1"}})");
  stand_in(
      "[ \"$NCCL_X\" != 1 ] || verdict=fail.numerics\n"
      "case \"$LD_LIBRARY_PATH $NCCL_X\" in *'nccl-b ') verdict=infra.gpu;; esac");
  const Printed first = bisect();
  EXPECT_EQ(first.exit_code, 4);
  EXPECT_NE(first.out.find("no answer from A with nccl of B"), std::string::npos) << first.out;
  const int before = count();
  stand_in("[ \"$NCCL_X\" != 1 ] || verdict=fail.numerics");
  const Printed second = bisect();
  EXPECT_EQ(second.exit_code, 0) << second.out;
  EXPECT_EQ(json(second.out).at("components"), nlohmann::json({"env NCCL_X"}));
  EXPECT_EQ(count() - before, 1) << "only the stack without an answer\n" << calls();
  EXPECT_NE(second.err.find("(known)"), std::string::npos);
  const Printed third = bisect();
  EXPECT_EQ(count() - before, 1);
  EXPECT_EQ(json(third.out).at("answer"), json(second.out).at("answer"));
}

TEST_F(BisectTest, AFailureThatIsInBothOrNeitherIsSaid) {
  stacks("{}", R"({"environment": {"NCCL_X": "1"}})");
  stand_in("verdict=fail.numerics");
  Printed printed = bisect();
  EXPECT_EQ(printed.exit_code, 4);
  EXPECT_NE(printed.out.find("fails with A too"), std::string::npos);
  stand_in("");
  printed = bisect({"--folder", top / "other"});
  EXPECT_EQ(printed.exit_code, 4);
  EXPECT_NE(printed.out.find("passes with B too"), std::string::npos);
}

TEST_F(BisectTest, AChildThatLeavesNothingIsNoVerdict) {
  stacks("{}", R"({"environment": {"NCCL_X": "1"}})");
  stand_in("echo broken; exit 3");
  const Printed printed = bisect();
  EXPECT_EQ(printed.exit_code, 4);
  EXPECT_NE(printed.err.find("no verdict, exit code 3"), std::string::npos) << printed.err;
}

TEST_F(BisectTest, BadStacksAreRefusedBeforeAnythingRuns) {
  stand_in("");
  const std::pair<const char*, const char*> rows[] = {{R"({"nccl": "nowhere"})", "libnccl.so"},
                                                      {R"({"driver": "nccl-a"})", "libcuda.so"},
                                                      {R"({"torch": "nccl-a"})", "with PyTorch"},
                                                      {R"({"cudnn": "nccl-a"})", "unknown part"},
                                                      {R"({"environment": {"X": 1}})", "no text"},
                                                      {R"([1])", "no object"},
                                                      {R"({})", "the same"}};
  for (const auto& [text, said] : rows) {
    stacks("{}", text);
    const Printed printed = bisect();
    EXPECT_EQ(printed.exit_code, 2) << text;
    EXPECT_NE(printed.err.find(said), std::string::npos) << printed.err;
  }
  EXPECT_FALSE(fs::exists(top / "calls"));
  stacks("{}", R"({"environment": {"NCCL_X": "1"}})");
  bisect({"--folder", top / "one"});
  stacks("{}", R"({"environment": {"NCCL_X": "2"}})");
  EXPECT_NE(bisect({"--folder", top / "one"}).err.find("another bisection"), std::string::npos);
}

}  // namespace
}  // namespace graphproof::cli

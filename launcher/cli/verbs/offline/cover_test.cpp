// The verbs cover and verify.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "launcher/cli/testing/command_under_test.h"

namespace graphproof::cli {
namespace {

namespace fs = std::filesystem;

struct CoverVerbTest : CommandUnderTest {
  CoverVerbTest() {
    file("m.pict",
         "os: linux, mac, win\narch: x86, arm\ngpu: none, one, two\n\nIF [os] = \"mac\" THEN [gpu] "
         "= \"none\";\nIF [arch] = \"arm\" THEN [os] <> \"win\";\n");
  }

  std::string read(const std::string& name) const {
    std::ifstream in(top / name);
    return {std::istreambuf_iterator<char>(in), {}};
  }
};

TEST_F(CoverVerbTest, WhatCoverWritesVerifyAccepts) {
  const std::string model = top / "m.pict";
  for (const char* out : {"rows.csv", "rows.jsonl"}) {
    const Printed covered =
        cli({"cover", model, "--strength", "2", "--steps", "500", "--out", top / out});
    ASSERT_EQ(covered.exit_code, 0) << covered.err;
    EXPECT_NE(
        covered.out.find("3 parameters, 2 at a time: 21 combinations, 18 covered, 3 unreachable"),
        std::string::npos)
        << covered.out;
    const Printed verified = cli({"verify", model, top / out, "--strength", "2"});
    EXPECT_EQ(verified.exit_code, 0) << verified.out;
    EXPECT_NE(verified.out.find("complete; 18 of 18 reachable combinations covered"),
              std::string::npos)
        << verified.out;
  }
}

TEST_F(CoverVerbTest, VerifyFailsOnARowTakenAway) {
  ASSERT_EQ(cli({"cover", top / "m.pict", "--out", top / "rows.csv"}).exit_code, 0);
  std::string rows = read("rows.csv");
  rows.erase(rows.rfind('\n', rows.size() - 2) + 1);
  file("rows.csv", rows);
  const Printed verified = cli({"verify", top / "m.pict", top / "rows.csv", "--json"});
  EXPECT_EQ(verified.exit_code, 1);
  const auto report = nlohmann::json::parse(verified.out);
  EXPECT_FALSE(report.at("complete").get<bool>());
  EXPECT_GT(report.at("missing_count").get<int>(), 0);
}

TEST_F(CoverVerbTest, WithoutOutTheRowsAreTheOutput) {
  const Printed covered = cli({"cover", top / "m.pict", "--seed", "3"});
  EXPECT_TRUE(covered.out.starts_with("os,arch,gpu\n")) << covered.out;
  EXPECT_EQ(covered.out, cli({"cover", top / "m.pict", "--seed", "3", "--threads", "3"}).out);
}

TEST_F(CoverVerbTest, ExplainNamesTheConstraintOfEachExclusion) {
  const Printed covered = cli({"cover", top / "m.pict", "--explain", "--json"});
  ASSERT_EQ(covered.exit_code, 0) << covered.err;
  const auto report = nlohmann::json::parse(covered.out);
  EXPECT_EQ(report.at("excluded").size(), 3u);
  EXPECT_EQ(report.at("excluded")[0].at("because")[0], "line 5")
      << report.dump(2);  // a mac has no gpu
  EXPECT_EQ(report.at("excluded")[2].at("because")[0], "line 6")
      << report.dump(2);  // arm has no win
  EXPECT_EQ(report.at("table").size(), report.at("rows").get<std::size_t>());
  EXPECT_EQ(report.at("combinations")[0].at("unreachable"), 3);
}

TEST_F(CoverVerbTest, AnEarlierAnswerIsKept) {
  ASSERT_EQ(cli({"cover", top / "m.pict", "--out", top / "rows.csv"}).exit_code, 0);
  const std::string rows = read("rows.csv");
  const auto before = static_cast<std::size_t>(std::count(rows.begin(), rows.end(), '\n')) - 1;
  file("m.pict", "os: linux, mac, win, bsd\narch: x86, arm\ngpu: none, one, two\n");
  const Printed covered = cli({"cover", top / "m.pict", "--extend", top / "rows.csv", "--json"});
  ASSERT_EQ(covered.exit_code, 0) << covered.err;
  const auto report = nlohmann::json::parse(covered.out);
  // At most one row more than a fresh result. Earlier rows that would need more are dropped, and
  // the number of dropped rows is printed.
  EXPECT_EQ(report.at("kept").size() + report.at("dropped").size(), before);
  EXPECT_GE(report.at("kept").size(), before - 1);
  EXPECT_LE(report.at("rows").get<int>(), 13);
}

TEST_F(CoverVerbTest, CostsAreReadByName) {
  const std::string costs = file("cost.json", "{\"gpu\": {\"two\": 8, \"one\": 4, \"none\": 1}}");
  const Printed covered = cli({"cover", top / "m.pict", "--cost", costs, "--json"});
  ASSERT_EQ(covered.exit_code, 0) << covered.err;
  EXPECT_LT(nlohmann::json::parse(covered.out).at("cost").get<double>(), 40);
  file("cost.json", "{\"gpu\": {\"tow\": 8}}");
  EXPECT_NE(cli({"cover", top / "m.pict", "--cost", costs}).err.find("did you mean `two`?"),
            std::string::npos);
}

TEST_F(CoverVerbTest, AMatrixFileIsAModelToo) {
  const std::string matrix = file("matrix.json",
                                  R"({"schema": "graphproof-matrix/1",
          "axes": {"impl": ["none", "manual"], "tp": [1, 2], "microbatches": [1, 2]},
    "profiles": {"p": {}}})");
  const Printed covered = cli({"cover", matrix, "--format", "graphproof"});
  EXPECT_EQ(covered.exit_code, 0) << covered.err;
  EXPECT_TRUE(covered.out.starts_with("impl,")) << covered.out;
}

struct RefusedModel {
  std::vector<std::string> arguments;
  const char* says;
};

TEST_F(CoverVerbTest, BadInputIsExitTwoWithPlaceAndHint) {
  const std::string model = top / "m.pict";
  const std::string broken =
      file("broken.pict", "os: linux, mac\nIF [oss] = \"mac\" THEN [os] = \"linux\";\n");
  const std::string contradiction = file("none.pict", "a: 0, 1\n[a] = 0;\n[a] = 1;\n");
  const RefusedModel rows[] = {
      {{"cover", broken}, "broken.pict:2:4"},
      {{"cover", broken}, "did you mean `os`?"},
      {{"cover", contradiction}, "line 2, line 3"},
      {{"cover", model, "--format", "pct"}, "did you mean `pict`?"},
      {{"cover", model, "--strength", "9"}, "1 to 6"},
      {{"cover", model, "--seconds", "0"}, "--seconds is not positive"},
      {{"verify", model, file("rows.csv", "os,arch\n")}, "the header lacks a parameter"},
      {{"verify", model}, "FILE is required"},
  };
  for (const RefusedModel& row : rows) {
    const Printed printed = cli(row.arguments);
    EXPECT_EQ(printed.exit_code, 2) << row.says;
    EXPECT_NE(printed.err.find(row.says), std::string::npos) << printed.err;
  }
}

}  // namespace
}  // namespace graphproof::cli

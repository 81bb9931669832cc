#include "launcher/run/judge_pool.h"

#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <iterator>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "reports/record/testing/scratch_folder.h"
#include "reports/record/text/file.h"

namespace graphproof::launcher {
namespace {

namespace fs = std::filesystem;

struct JudgePoolTest : testing::Test {
  fs::path judge(const std::string& script) const {
    fs::path program = folder.path() / "judge";
    std::ofstream(program) << "#!/bin/sh\n" << script << "\n";
    fs::permissions(program, fs::perms::owner_all);
    return program;
  }
  JudgePool::Judged judged_by(const std::string& script) const {
    JudgePool pool(judge(script));
    pool.add(folder.path());
    for (int look = 0; look < 2000;
         ++look, std::this_thread::sleep_for(std::chrono::milliseconds(5)))
      if (auto ended = pool.step(0); !ended.empty()) return ended.front();
    ADD_FAILURE() << "the judge did not end";
    return {};
  }
  const record::ScratchFolder folder;
};

TEST_F(JudgePoolTest, TheOutputOfAJudgeIsKeptOnlyWhereThereWasTrouble) {
  const std::string checks =
      R"({"schema":"graphproof-checks/1","case":"0000000000abc000","attempt":1,"ranks":[],)"
      R"("figures":{},"checks":[]})";
  const auto well = judged_by("echo all is well; echo '" + checks + "' >$1/checks.json");
  EXPECT_EQ(well.trouble, "");
  EXPECT_TRUE(well.checks);
  EXPECT_FALSE(fs::exists(folder.path() / "judge.log"));
  const auto badly = judged_by("echo evidence breaks me >&2; exit 3");
  EXPECT_FALSE(badly.checks) << "an older judgement is not taken for this one";
  EXPECT_EQ(
      badly.trouble.find("graphproof-judge ended with exit code 3; its output is in judge.log"), 0u)
      << badly.trouble;
  EXPECT_EQ(record::read_text(folder.path() / "judge.log"), "evidence breaks me\n");
}

/// Judges as the program does, except that one folder breaks it, and notes how many folders each
/// judge got.
constexpr char kJudgesAll[] = R"(echo $# >>"$(dirname "$0")/given"
for one; do
  case "$one" in *breaks*) echo broken by "$one" >&2; exit 3;; esac
  echo '{"schema":"graphproof-checks/1","case":"0000000000abc000","attempt":1,
    "ranks":[],"figures":{},"checks":[]}' >"$one/checks.json"
done)";

struct SharedJudgeTest : JudgePoolTest {
  std::map<std::string, JudgePool::Judged> judge_all(const std::vector<std::string>& names) {
    JudgePool pool(judge(kJudgesAll));
    for (const std::string& name : names) {
      fs::create_directory(folder.path() / name);
      pool.add(folder.path() / name);
    }
    std::map<std::string, JudgePool::Judged> all;
    for (int look = 0; look < 2000 && !pool.idle();
         ++look, std::this_thread::sleep_for(std::chrono::milliseconds(5)))
      for (JudgePool::Judged& one : pool.step(0))
        EXPECT_TRUE(all.emplace(one.attempt_folder.filename(), one).second) << "judged twice";
    EXPECT_TRUE(pool.idle());
    return all;
  }
  /// In the order of their numbers, because two judges run at the same time.
  std::multiset<int> given() const {
    std::ifstream in(folder.path() / "given");
    return {std::istream_iterator<int>(in), {}};
  }
};

TEST_F(SharedJudgeTest, AttemptsThatWaitShareJudgesUpToABound) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < 2 * JudgePool::kShared + 3; ++i)
    names.push_back("attempt-" + std::to_string(i));
  const auto all = judge_all(names);
  ASSERT_EQ(all.size(), names.size());
  for (const auto& [name, one] : all)
    EXPECT_TRUE(one.checks && one.trouble.empty()) << name << ": " << one.trouble;
  const std::multiset<int> shares = given();
  EXPECT_EQ(std::accumulate(shares.begin(), shares.end(), 0), static_cast<int>(names.size()));
  EXPECT_EQ(shares.count(static_cast<int>(JudgePool::kShared)), 2u);
}

TEST_F(SharedJudgeTest, WhatBreaksASharedJudgeCostsNoOtherAttemptItsChecks) {
  const auto all = judge_all({"a", "breaks", "b", "c", "d", "e", "f"});
  ASSERT_EQ(all.size(), 7u);
  for (const auto& [name, one] : all) {
    EXPECT_EQ(one.checks.has_value(), name != "breaks") << one.trouble;
    EXPECT_EQ(fs::exists(folder.path() / name / "judge.log"), name == "breaks") << name;
  }
  EXPECT_EQ(all.at("breaks").trouble.find(
                "graphproof-judge ended with exit code 3; its output is in judge.log"),
            0u)
      << all.at("breaks").trouble;
  EXPECT_EQ(record::read_text(folder.path() / "breaks/judge.log"),
            "broken by " + (folder.path() / "breaks").string() + "\n");
  EXPECT_EQ(given(), (std::multiset<int>{1, 1, 1, 3, 4}))
      << "`breaks` and the two behind it get a judge each";
}

TEST_F(JudgePoolTest, AJudgeThatCannotBeStartedIsTrouble) {
  JudgePool pool(folder.path() / "absent");
  pool.add(folder.path());
  const auto ended = pool.step(0);
  ASSERT_EQ(ended.size(), 1u);
  EXPECT_NE(ended[0].trouble.find("not found in PATH or not executable"), std::string::npos)
      << ended[0].trouble;
  EXPECT_TRUE(pool.idle());
}

}  // namespace
}  // namespace graphproof::launcher

#include "launcher/judge_pool.h"

#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <thread>

#include "reports/record/file.h"
#include "reports/record/scratch_folder.h"

namespace graphproof::launcher {
namespace {

namespace fs = std::filesystem;

struct JudgePoolTest : testing::Test {
  fs::path judge(const std::string& script) const {
    const fs::path program = folder.path() / "judge";
    std::ofstream(program) << "#!/bin/sh\n" << script << "\n";
    fs::permissions(program, fs::perms::owner_all);
    return program;
  }
  JudgePool::Judged judged_by(const std::string& script) const {
    JudgePool pool(judge(script));
    pool.add(folder.path());
    for (int look = 0; look < 2000; ++look, std::this_thread::sleep_for(std::chrono::milliseconds(5)))
      if (auto ended = pool.step(0); !ended.empty()) return ended.front();
    ADD_FAILURE() << "the judge did not end";
    return {};
  }
  const record::ScratchFolder folder;
};

TEST_F(JudgePoolTest, WhatAJudgeSaysIsKeptOnlyWhereThereWasTrouble) {
  const std::string checks = R"({"schema":"graphproof-checks/1","case":"0000000000abc000","attempt":1,"ranks":[],"figures":{},"checks":[]})";
  const auto well = judged_by("echo all is well; echo '" + checks + "' >$1/checks.json");
  EXPECT_EQ(well.trouble, "");
  EXPECT_TRUE(well.checks);
  EXPECT_FALSE(fs::exists(folder.path() / "judge.log"));
  const auto badly = judged_by("echo evidence breaks me >&2; exit 3");
  EXPECT_FALSE(badly.checks) << "an older judgement is not taken for this one";
  EXPECT_EQ(badly.trouble.find("graphproof-judge ended with exit code 3; its output is in judge.log"), 0u) << badly.trouble;
  EXPECT_EQ(record::read_text(folder.path() / "judge.log"), "evidence breaks me\n");
}

TEST_F(JudgePoolTest, AJudgeThatCannotBeStartedIsTrouble) {
  JudgePool pool(folder.path() / "absent");
  pool.add(folder.path());
  const auto ended = pool.step(0);
  ASSERT_EQ(ended.size(), 1u);
  EXPECT_NE(ended[0].trouble.find("not found in PATH or not executable"), std::string::npos) << ended[0].trouble;
  EXPECT_TRUE(pool.idle());
}

}  // namespace
}  // namespace graphproof::launcher

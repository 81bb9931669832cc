// Tests from the command line that the verdict names the rank and phase of an early exit, for all
// phases of a case. Needs the built programs and mpirun.
#include "suites/rank/early_exit.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>

#include "reports/record/run/journal.h"
#include "reports/record/text/file.h"
#include "reports/record/text/message.h"

namespace graphproof::suites {
namespace {

namespace fs = std::filesystem;
using record::Phase;

TEST(EarlyExit, IsForOneRankInOnePhase) {
  EXPECT_EQ(early_exit("replay,1", 1), Phase::replay);
  EXPECT_EQ(early_exit("replay,1", 0), std::nullopt);
  EXPECT_EQ(early_exit("teardown_comm,0", 0), Phase::teardown_comm);
  EXPECT_EQ(early_exit("unset", 0), std::nullopt);
  EXPECT_EQ(early_exit("", 0), std::nullopt);
}

TEST(EarlyExit, WhatCannotBeReadIsRefused) {
  for (const char* text :
       {"replay", "replay,", "replay,x", "replay,-1", "lunch,1", ",1", "replay,1x"}) {
    try {
      early_exit(text, 1);
      ADD_FAILURE() << text << " was read";
    } catch (const record::Error& error) {
      EXPECT_NE(std::string(error.what()).find("want PHASE,RANK, such as replay,1"),
                std::string::npos)
          << error.what();
    }
  }
}

TEST(EarlyExitRun, TheVerdictNamesThePhaseAndTheRankWhereverItEnds) {
  // All phases except validate, in which a rank has written nothing yet.
  const char* const phases[] = {"init",          "build",           "eager",   "warmup",
                                "capture",       "replay",          "compare", "teardown_graph",
                                "teardown_comm", "teardown_process"};
  const fs::path folder =
      fs::temp_directory_path() / ("graphproof-early-exit-" + std::to_string(getpid()));
  fs::remove_all(folder);
  fs::create_directories(folder);
  std::string values;
  for (const char* phase : phases)
    values += std::string(values.empty() ? "" : ", ") + "\"" + phase + ",1\"";
  std::ofstream(folder / "early.json")
      << R"({"schema": "graphproof-matrix/1", "axes": {"impl": ["full_iteration"], "tp": [2], )"
      << R"("microbatches": [2], "env.GRAPHPROOF_EXIT": [)" << values << "]}, "
      << R"("profiles": {"early": {"isolation": "process"}}})";
  const fs::path program = fs::path(std::getenv("GRAPHPROOF_BIN")) / "graphproof";
  const std::string command =
      program.string() + " run --matrix " + (folder / "early.json").string() +
      " --profile early --device sim --run-dir " + (folder / "run").string() + " > " +
      (folder / "out").string() + " 2>&1";
  const int status = std::system(command.c_str());
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 1) << command;
  std::map<std::string, record::Record> by_name;
  for (const record::Record& record :
       record::read_journal(folder / "run" / "journal.jsonl").records)
    by_name.emplace(record.name, record);
  for (const char* phase : phases) {
    SCOPED_TRACE(phase);
    const record::Record* found = nullptr;
    for (const auto& [name, record] : by_name)
      if (name.find("\"" + std::string(phase) + ",1\"") != std::string::npos) found = &record;
    ASSERT_NE(found, nullptr) << folder;
    EXPECT_TRUE(found->verdict.in("fail.crash") || found->verdict.text() == "fail.eager")
        << found->verdict.text();
    EXPECT_NE(found->reason.find("rank 1"), std::string::npos) << found->reason;
    EXPECT_NE(found->reason.find(std::string("in phase ") + phase), std::string::npos)
        << found->reason;
  }
  if (!HasFailure()) fs::remove_all(folder);
}

}  // namespace
}  // namespace graphproof::suites

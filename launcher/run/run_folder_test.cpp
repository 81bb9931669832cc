#include "launcher/run/run_folder.h"

#include <gtest/gtest.h>

#include <fstream>
#include <regex>

#include "matrix/input/input_error.h"
#include "reports/record/testing/scratch_folder.h"

namespace graphproof::launcher {
namespace {

namespace fs = std::filesystem;

struct RunFolderTest : testing::Test {
  fs::path made(const std::string& id) {
    const fs::path folder = create_run_folder(runs, std::nullopt, id);
    std::ofstream(folder / "run.json") << "{}";
    return folder;
  }
  const record::ScratchFolder scratch;
  const fs::path top = scratch.path(), runs = top / "runs";
};

TEST_F(RunFolderTest, AnIdIsUtcTimeAndFourDigitsThatTellRunsApart) {
  EXPECT_TRUE(std::regex_match(make_run_id(0, 1), std::regex("19700101-000000-[0-9a-f]{4}")));
  EXPECT_NE(make_run_id(0, 1), make_run_id(0, 2));
  EXPECT_EQ(utc_text(86399), "1970-01-01T23:59:59Z");
}

TEST_F(RunFolderTest, ARunIsFoundByIdByPathAndAsTheLatest) {
  made("20260101-000000-aaaa");
  const fs::path second = made("20260101-000001-bbbb");
  EXPECT_EQ(find_run(runs, "latest"), fs::canonical(second));
  EXPECT_EQ(find_run(runs, second), fs::canonical(second));
  EXPECT_EQ(find_run(runs, "20260101-000000-aaaa").filename(), "20260101-000000-aaaa");
  EXPECT_EQ(run_ids(runs),
            (std::vector<std::string>{"20260101-000001-bbbb", "20260101-000000-aaaa"}));
  EXPECT_EQ(fs::status(second).permissions(), fs::perms::owner_all);
}

TEST_F(RunFolderTest, AFolderOfTheUsersChoiceIsFoundByItsIdToo) {
  const fs::path folder = create_run_folder(runs, top / "mine", "20260101-000000-cccc");
  std::ofstream(folder / "run.json") << "{}";
  EXPECT_EQ(find_run(runs, "20260101-000000-cccc"), fs::canonical(folder));
  EXPECT_EQ(find_run(runs, "latest"), fs::canonical(folder));
}

TEST_F(RunFolderTest, TheLatestIsTheNewestThatIsStillThere) {
  const fs::path first = made("20260101-000000-aaaa");
  fs::remove_all(made("20260101-000001-bbbb"));
  EXPECT_EQ(find_run(runs, "latest"), fs::canonical(first));
}

TEST_F(RunFolderTest, ATakenFolderIsRefused) {
  made("20260101-000000-aaaa");
  try {
    create_run_folder(runs, runs / "20260101-000000-aaaa", "20260101-000000-dddd");
    FAIL() << "a second run in one folder";
  } catch (const matrix::InputError& error) {
    EXPECT_EQ(error.problem().what, "--run-dir is taken");
    EXPECT_EQ(error.problem().next, "choose another folder, or remove this one");
  }
}

TEST_F(RunFolderTest, AnUnknownRunNamesTheNearest) {
  made("20260101-000000-aaaa");
  try {
    find_run(runs, "20260101-000000-aaab");
    FAIL() << "no such run";
  } catch (const matrix::InputError& error) {
    EXPECT_EQ(error.problem().got, "`20260101-000000-aaab`");
    EXPECT_EQ(error.problem().next, "did you mean `20260101-000000-aaaa`?");
  }
}

TEST_F(RunFolderTest, AReferenceIsSplitAtItsLastSlashButNotInsideAName) {
  EXPECT_EQ(split_reference("9d2c").run, std::nullopt);
  EXPECT_EQ(split_reference("some/run/9d2c").run, "some/run");
  EXPECT_EQ(split_reference("some/run/9d2c").case_text, "9d2c");
  EXPECT_EQ(split_reference("latest/impl=manual,env.X=\"/tmp\"").case_text,
            "impl=manual,env.X=\"/tmp\"");
}

}  // namespace
}  // namespace graphproof::launcher

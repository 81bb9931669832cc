#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "launcher/cli/testing/command_under_test.h"
#include "matrix/case/case.h"
#include "reports/record/text/file.h"

namespace graphproof::cli {
namespace {

namespace fs = std::filesystem;

struct NewSubjectTest : CommandUnderTest {
  NewSubjectTest() {
    fs::create_directories(top / "bin/python/graphproof/subjects");
    std::ofstream(top / "bin/python/graphproof/subjects/template.py") << "def build(case):\n";
  }
};

TEST_F(NewSubjectTest, CopiesTheExampleAndPrintsTheCaseThatRunsIt) {
  const std::string file = top / "mine.py";
  const Printed printed = cli({"new-subject", file});
  EXPECT_EQ(printed.exit_code, 0) << printed.err;
  EXPECT_EQ(record::read_text(file), "def build(case):\n");
  const std::size_t begin = printed.out.find('\''), end = printed.out.rfind('\'');
  ASSERT_NE(begin, std::string::npos);
  const matrix::Case printed_case =
      case_from_name(catalogue.axes, printed.out.substr(begin + 1, end - begin - 1), "");
  EXPECT_EQ(subject_of(printed_case), "script");
  EXPECT_EQ(text_of(catalogue.axes, printed_case, "env.GRAPHPROOF_SCRIPT"), file);
  EXPECT_TRUE(
      catalogue.capabilities.missing(printed_case, {.device = "cuda", .slots = 1, .stack = {}})
          .empty());
}

TEST_F(NewSubjectTest, JsonNamesTheFileAndTheCase) {
  const nlohmann::json printed =
      nlohmann::json::parse(cli({"new-subject", top / "mine.py", "--json"}).out);
  EXPECT_EQ(std::string(printed.at("file")), (top / "mine.py").string());
  EXPECT_EQ(subject_of(case_from_name(catalogue.axes, std::string(printed.at("case")), "")),
            "script");
}

TEST_F(NewSubjectTest, AFileOfTheUserIsNeverReplaced) {
  const std::string mine = file("mine.py", "my work\n");
  const Printed printed = cli({"new-subject", mine});
  EXPECT_EQ(printed.exit_code, 2);
  EXPECT_NE(printed.err.find("exists"), std::string::npos) << printed.err;
  EXPECT_EQ(record::read_text(mine), "my work\n");
  fs::create_symlink("/no/such/file", top / "link.py");
  EXPECT_EQ(cli({"new-subject", top / "link.py"}).exit_code, 2);
}

TEST_F(NewSubjectTest, APlaceThatCannotBeWrittenAndAMissingExampleAreNamed) {
  EXPECT_NE(cli({"new-subject", top / "no/such/folder/mine.py"}).err.find("could not be written"),
            std::string::npos);
  fs::remove_all(top / "bin");
  const Printed printed = cli({"new-subject", top / "mine.py"});
  EXPECT_EQ(printed.exit_code, 2);
  EXPECT_NE(printed.err.find("the example of a script is missing"), std::string::npos);
  EXPECT_FALSE(fs::exists(top / "mine.py"));
}

TEST_F(NewSubjectTest, TheTreeHasTheExample) {
  const fs::path tree = std::getenv("GRAPHPROOF_SOURCE");
  const std::string text = record::read_text(tree / "python/graphproof/subjects/template.py");
  EXPECT_NE(text.find("def build(case"), std::string::npos);
}

}  // namespace
}  // namespace graphproof::cli

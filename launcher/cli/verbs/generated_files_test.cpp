// The help texts and completions in the tree, which graphproof-generate writes: they are the texts
// that the program prints, none is left over, and they fit a terminal.
#include "launcher/cli/help/generated_files.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "launcher/cli/testing/command_under_test.h"

namespace graphproof::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kWidestHelpLine = 80;

struct GeneratedFilesTest : CommandUnderTest {
  const std::map<std::string, std::string> files = generated_files(verbs(), catalogue.axes);
};

TEST_F(GeneratedFilesTest, InTheTreeBelongToVerbs) {
  const fs::path folder = fs::path(std::getenv("GRAPHPROOF_SOURCE")) / "launcher/cli/help";
  for (const char* generated : {"text", "completion"})
    for (const fs::directory_entry& entry : fs::directory_iterator(folder / generated))
      EXPECT_TRUE(files.contains(fs::relative(entry.path(), folder)))
          << entry.path() << " belongs to no verb; remove it";
}

TEST_F(GeneratedFilesTest, AreWhatHelpPrints) {
  EXPECT_EQ(cli({}).out, files.at("text/overview.txt"));
  EXPECT_EQ(cli({"--help"}).out, files.at("text/overview.txt"));
  EXPECT_EQ(cli({"help"}).out, files.at("text/overview.txt"));
  for (const Verb& verb : verbs()) {
    const std::string name(verb.name);
    EXPECT_EQ(cli({name, "--help"}).out, files.at("text/" + name + ".txt"));
    EXPECT_EQ(cli({"help", name}).out, files.at("text/" + name + ".txt"));
  }
}

TEST_F(GeneratedFilesTest, FitATerminalOfEightyColumns) {
  for (const auto& [name, text] : files) {
    if (!name.starts_with("text/")) continue;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);)
      EXPECT_LE(line.size(), kWidestHelpLine) << name << ": " << line;
  }
}

TEST_F(GeneratedFilesTest, EveryOptionSaysWhatItsValueIsAndEveryVerbHasAnExample) {
  for (const auto& [name, text] : files) {
    if (!name.starts_with("text/") || name == "text/agent.txt") continue;
    // CLI11 uses these names for an option that was declared without one.
    for (const char* type : {" TEXT", " INT", " UINT", " FLOAT"})
      EXPECT_EQ(text.find(type), std::string::npos) << name << type;
  }
  for (const Verb& verb : verbs())
    if (verb.group != VerbGroup::internal) {
      EXPECT_TRUE(verb.example.starts_with("graphproof " + std::string(verb.name))) << verb.name;
    }
}

TEST_F(GeneratedFilesTest, AVerbThatDoesNotExistHasNoHelp) {
  const Printed printed = cli({"help", "rum"});
  EXPECT_EQ(printed.exit_code, 2);
  EXPECT_NE(printed.err.find("did you mean `run`?"), std::string::npos) << printed.err;
}

}  // namespace
}  // namespace graphproof::cli

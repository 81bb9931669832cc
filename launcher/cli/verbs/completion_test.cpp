// The completions as the shells run them: bash is asked what it would offer for the beginning of a
// command line. zsh loads its file and offers the options of a verb.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <cstdlib>

#include "launcher/cli/testing/command_under_test.h"
#include "launcher/host/child.h"

namespace graphproof::cli {
namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

constexpr std::int64_t kDeadline_ms = 20'000;

fs::path source() { return fs::absolute(std::getenv("GRAPHPROOF_SOURCE")); }

struct CompletionTest : CommandUnderTest {
  /// The lines that `script` prints when `shell` runs it in an empty folder with one run of cases
  /// and one watched run.
  Words lines(const Words& shell, const std::string& script) {
    fs::create_directories(top / "runs" / "20260801-120000-abcd");
    std::ofstream(top / "runs" / "20260801-120000-abcd" / "run.json") << "{}";
    fs::create_directories(top / "runs" / "20260802-120000-beef");
    std::ofstream(top / "runs" / "20260802-120000-beef" / "watched.json") << "{}";
    Words command = shell;
    command.push_back("cd '" + top.string() + "'\n" + script);
    const launcher::Output output =
        launcher::run_to_end({command, launcher::own_environment()}, kDeadline_ms);
    EXPECT_EQ(output.exit, launcher::Exit{}) << output.error;
    EXPECT_EQ(output.error, "");
    Words result;
    std::istringstream in(output.out);
    for (std::string line; std::getline(in, line);) result.push_back(line);
    return result;
  }

  /// What bash offers for the last of `words`, which follow ./graphproof.
  Words offered(const Words& words) {
    std::string script =
        "source '" + (source() / "launcher/cli/help/completion/graphproof.bash").string() + "'\n" +
        // Only a completion that readline started may use it.
        "compopt() { :; }\n" + "COMP_WORDS=('" + (source() / "graphproof").string() + "'";
    for (const std::string& word : words) script += " '" + word + "'";
    script += ")\nCOMP_CWORD=" + std::to_string(words.size()) + "\n" +
              "_graphproof\n((${#COMPREPLY[@]})) && printf '%s\\n' \"${COMPREPLY[@]}\" || true";
    return lines({"/bin/bash", "--norc", "-c"}, script);
  }
};

struct Row {
  Words words;
  Words offered;
};

TEST_F(CompletionTest, BashOffersTheRestOfTheWord) {
  const Row rows[] = {
      {{"re"}, {"resume", "rerun", "repro", "report"}},
      {{"help", "sh"}, {"shrink"}},
      {{"run", "--prof"}, {"--profile"}},
      {{"run", "--profile", "sm"}, {"smoke"}},
      {{"run", "--device", ""}, {"auto", "sim", "cuda"}},
      {{"run", "--device", "=", "c"}, {"cuda"}},
      {{"run", "--device", "="}, {"auto", "sim", "cuda"}},
      {{"run", "--seed", ""}, {}},
      {{"run", "--where", "imp"}, {"impl"}},
      {{"list", "a"}, {"axes"}},
      {{"ci", "--device", "sim", "g"}, {"gitlab", "github"}},
      {{"status", ""}, {"latest", "20260801-120000-abcd", "20260802-120000-beef"}},
      {{"rerun", "latest", "--fa"}, {"--failed"}},
      {{"rerun", "latest", "imp"}, {"impl="}},
      {{"case", "tp", "=", "2,imp"}, {"2,impl="}},
      {{"case", "impl", "=", "man"}, {}},
      {{"check", "--", "--de"}, {}},
      {{"rum", "--"}, {}},
  };
  for (const Row& row : rows) {
    std::string shown;
    for (const std::string& word : row.words) shown += " " + word;
    EXPECT_EQ(offered(row.words), row.offered) << "./graphproof" << shown;
  }
}

TEST_F(CompletionTest, BashOffersEveryOptionOfEveryVerb) {
  for (const Verb& verb : verbs()) {
    if (verb.group == VerbGroup::internal) continue;
    const std::string help = cli({std::string(verb.name), "--help"}).out;
    Words shown;
    std::istringstream in(help);
    for (std::string line; std::getline(in, line);)
      if (line.starts_with("  --")) shown.push_back(line.substr(2, line.find(' ', 2) - 2));
    shown.emplace_back("--help");
    EXPECT_EQ(offered({std::string(verb.name), "--"}), shown) << verb.name;
  }
}

TEST_F(CompletionTest, ZshOffersTheOptionsOfAVerb) {
  if (std::system("command -v zsh >/dev/null") != 0)
    GTEST_SKIP() << "zsh is not installed; ./graphproof test installs it";
  const std::string completion =
      "'" + (source() / "launcher/cli/help/completion/_graphproof").string() + "'";
  EXPECT_EQ(lines({"zsh", "-f", "-c"}, "zsh -n " + completion), Words{});
  const Words specs = lines(
      {"zsh", "-f", "-c"},
      "_arguments() { print -rl -- \"$@\"; }\n"
      "_graphproof_asked() { local -a words=(./graphproof list ''); local CURRENT=3; source " +
          completion + "; }\n_graphproof_asked");
  EXPECT_TRUE(std::ranges::any_of(specs, [](const std::string& spec) {
    return spec == ":WHAT:(axes profiles rules checks faults runs cases)";
  }));
  EXPECT_TRUE(std::ranges::any_of(
      specs, [](const std::string& spec) { return spec.starts_with("--run["); }));
}

}  // namespace
}  // namespace graphproof::cli

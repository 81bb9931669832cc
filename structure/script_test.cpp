// The script ./graphproof and what it sources: help that needs nothing, the progress bar, and
// ShellCheck's opinion. What the set-up installs and builds is tried by hand on a bare machine.
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

namespace {

namespace fs = std::filesystem;

constexpr std::chrono::seconds kSoon{1};

fs::path source() { return fs::absolute(std::getenv("GRAPHPROOF_SOURCE")); }

std::string text_of(const fs::path& file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), {}};
}

struct Ended {
  int exit_code = -1;
  std::string output;  // both streams
};

/// A bash without any command but its own and nothing of this process's environment.
Ended bare_bash(const std::string& script) {
  const fs::path file = fs::temp_directory_path() / ("graphproof-" + std::to_string(getpid()));
  std::ofstream(file) << script;
  const std::string command =
      "env -i PATH=/nonexistent GRAPHPROOF_BUILD=/nonexistent/build /bin/bash '" + file.string() +
      "' 2>&1";
  Ended ended;
  FILE* pipe = popen(command.c_str(), "r");
  char buffer[4096];
  for (std::size_t got; (got = fread(buffer, 1, sizeof buffer, pipe)) > 0;)
    ended.output.append(buffer, got);
  const int status = pclose(pipe);
  if (WIFEXITED(status)) ended.exit_code = WEXITSTATUS(status);
  fs::remove(file);
  return ended;
}

std::string call(const std::string& arguments) {
  return "/bin/bash '" + (source() / "graphproof").string() + "' " + arguments;
}

TEST(ScriptTest, HelpAnswersAtOnceWithNothingBuiltOrInstalled) {
  const std::pair<const char*, const char*> rows[] = {
      {"", "overview"},        {"--help", "overview"},
      {"-h", "overview"},      {"help", "overview"},
      {"help run", "run"},     {"help test", "test"},
      {"run --help", "run"},   {"plan --profile smoke -h", "plan"},
      {"test --help", "test"}, {"check --help -- --bf16", "check"},
  };
  for (const auto& [arguments, text] : rows) {
    const auto began = std::chrono::steady_clock::now();
    const Ended ended = bare_bash(call(arguments));
    EXPECT_LT(std::chrono::steady_clock::now() - began, kSoon) << arguments;
    EXPECT_EQ(ended.exit_code, 0) << arguments;
    EXPECT_EQ(ended.output,
              text_of(source() / "launcher/cli/help/text" / (text + std::string(".txt"))))
        << arguments;
  }
}

TEST(ScriptTest, AVerbThatDoesNotExistBuildsNothing) {
  const Ended ended = bare_bash(call("rum --profile smoke"));
  EXPECT_EQ(ended.exit_code, 2);
  EXPECT_NE(ended.output.find("no verb `rum`"), std::string::npos) << ended.output;
  EXPECT_NE(ended.output.find("next: ./graphproof help"), std::string::npos) << ended.output;
}

TEST(ScriptTest, HelpAfterTwoDashesBelongsToAnotherProgram) {
  // So the verb is run, for which this bash lacks everything.
  const Ended ended = bare_bash(call("check -- --help"));
  EXPECT_EQ(ended.output.find("Usage:"), std::string::npos) << ended.output;
  EXPECT_NE(ended.exit_code, 0);
}

std::string progress(const std::string& script) {
  return ". '" + (source() / "cmake/setup/progress.sh").string() + "'\nsteps=3 step_number=3\n" +
         script;
}

TEST(ScriptTest, NinjasLinesBecomeABarOnATerminal) {
  const Ended ended = bare_bash(
      progress("terminal=yes\n"
               "show_build <<<$'ninja: Entering directory `build\\'\\n[30/120] Building a\\n"
               "FAILED: b.o\\nb.cpp:1: error\\n[60/120] Building c'"));
  EXPECT_EQ(ended.output,
            "\r[set-up 3/3, 0 s] build [######..................] 25 %\033[K\r\033[K"
            "FAILED: b.o\nb.cpp:1: error\n"
            "\r[set-up 3/3, 0 s] build [############............] 50 %\033[K\r\033[K");
}

TEST(ScriptTest, TheBarTellsTheRemainingTime) {
  const Ended ended = bare_bash(
      progress("terminal=yes\nbar_started_s=$((SECONDS - 100))\nbar 1 3 build\nbar 1 5 build"));
  EXPECT_NE(ended.output.find(" 33 %, about 3 min left"), std::string::npos) << ended.output;
  EXPECT_NE(ended.output.find(" 20 %, about 7 min left"), std::string::npos) << ended.output;
}

TEST(ScriptTest, WithoutATerminalALineComesNowAndThen) {
  const std::string lines = "<<<$'[30/120] Building a\\n[60/120] Building b'";
  EXPECT_EQ(bare_bash(progress("show_build " + lines)).output, "");
  EXPECT_EQ(bare_bash(progress("plain_every_s=0\nshow_build " + lines)).output,
            "[set-up 3/3, 0 s] build: 25 %\n[set-up 3/3, 0 s] build: 50 %\n");
}

TEST(ScriptTest, AptGetsStatusLinesBecomeTheBarAndTheOthersGoToTheLog) {
  const fs::path log = fs::temp_directory_path() / ("graphproof-log-" + std::to_string(getpid()));
  const Ended ended = bare_bash(
      progress("plain_every_s=0\nshow_packages '" + log.string() +
               "' <<<$'Reading package lists...\\ndlstatus:1:50.0000:Retrieving file 1 of 2\\n"
               "pmstatus:cmake:25.0000:Unpacking cmake\\nSetting up cmake ...'"));
  EXPECT_EQ(ended.output, "[set-up 3/3, 0 s] packages: 25 %\n[set-up 3/3, 0 s] packages: 62 %\n");
  EXPECT_EQ(text_of(log), "Reading package lists...\nSetting up cmake ...\n");
  fs::remove(log);
}

TEST(ScriptTest, ShellCheckFindsNothing) {
  if (std::system("command -v shellcheck >/dev/null") != 0)
    GTEST_SKIP() << "shellcheck is not installed; ./graphproof test installs it";
  const std::string command = "cd '" + source().string() +
                              "' && shellcheck -x graphproof cmake/setup/*.sh "
                              "launcher/cli/help/completion/graphproof.bash";
  EXPECT_EQ(std::system(command.c_str()), 0);
}

}  // namespace

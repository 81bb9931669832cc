#include "launcher/backend/subjects.h"

#include <gtest/gtest.h>

#include "launcher/backend/local_command.h"
#include "reports/record/text/message.h"

namespace graphproof::launcher {
namespace {

using Names = std::vector<std::string>;

const Names kNames = {"torch", "megatron_core"};

/// A command that prints `answer` for one Python, and fails for every other one.
std::function<Command(const std::string&)> only(const std::string& python,
                                                const std::string& answer) {
  return [=](const std::string& asked) -> Command {
    if (asked == python) return {{"/bin/echo", answer}, {}};
    return {{"/bin/sh", "-c", "echo Traceback >&2; echo 'No module named torch' >&2; exit 1"}, {}};
  };
}

TEST(SubjectsTest, ThePythonOfTheUserIsTheOneThatGraphproofLooksFor) {
  EXPECT_EQ(pythons({{"GRAPHPROOF_PYTHON", "/opt/python"}, {"HOME", "/root"}}),
            Names{"/opt/python"});
  EXPECT_EQ(pythons({{"HOME", "/home/me"}}),
            (Names{"python3", "/home/me/.cache/graphproof/python/bin/python"}));
  EXPECT_EQ(pythons({{"HOME", "/home/me"}, {"XDG_CACHE_HOME", "/cache"}}).back(),
            "/cache/graphproof/python/bin/python");
  EXPECT_EQ(pythons({{"HOME", "/home/me"}, {"GRAPHPROOF_HOME", "/private"}}).back(),
            "/private/python/bin/python");
}

TEST(SubjectsTest, ThePackageOfTheTreeComesFirst) {
  EXPECT_EQ(subjects_command("python3", "/build/bin", {{"PYTHONPATH", "/mine"}}),
            (Names{"/usr/bin/env", "PYTHONPATH=/build/bin/python:/mine", "python3", "-m",
                   "graphproof.subjects", "--json"}));
  EXPECT_EQ(python_path("/build/bin", {}), "/build/bin/python");
}

TEST(SubjectsTest, AnAnswerIsReadWithWarningsBeforeItAndNamesMissingFromIt) {
  const auto subjects = subjects_from(
      "UserWarning: old\n"
      R"({"torch": {"available": true, "version": "2.11.0", "why": ""},)"
      R"( "jax": {"available": true}})",
      kNames, "python3");
  EXPECT_EQ(subjects.size(), 2u);
  EXPECT_EQ(subjects.at("torch"),
            (record::SubjectState{.available = true, .version = "2.11.0", .why = ""}));
  EXPECT_EQ(subjects.at("megatron_core").why, "python3 does not name it");
  EXPECT_EQ(subjects_from(R"({"torch": {"available": false}})", kNames, "p").at("torch").why,
            "p gives no reason");
  for (const char* wrong : {"", "no answer", "[1]", R"({"torch": 1})", R"({"torch": {}})"})
    EXPECT_THROW(subjects_from(wrong, kNames, "p"), record::ReadError) << wrong;
}

TEST(SubjectsTest, TheFirstPythonThatHasASubjectIsTaken) {
  const std::string answer = R"({"torch": {"available": true, "version": "2.11.0"},)"
                             R"( "megatron_core": {"available": false, "why": "not installed"}})";
  record::Stack stack;
  ask_for_subjects(stack, kNames, {"python3", "/private"}, only("/private", answer));
  EXPECT_EQ(stack.python, "/private");
  EXPECT_TRUE(stack.subjects.at("torch").available);
  EXPECT_EQ(stack.subjects.at("megatron_core").why, "not installed");
  ask_for_subjects(stack, kNames, {"python3", "/private"}, only("python3", answer));
  EXPECT_EQ(stack.python, "python3");
}

TEST(SubjectsTest, WithoutAnAnswerNoSubjectIsAvailableAndTheReasonIsWhatHappened) {
  record::Stack stack;
  ask_for_subjects(stack, kNames, {"python3", "/private"}, only("neither", ""));
  EXPECT_EQ(stack.python, "python3");
  for (const std::string& name : kNames)
    EXPECT_EQ(
        stack.subjects.at(name).why,
        "python3 -m graphproof.subjects --json ended with exit code 1: No module named torch");
  const auto answers = [&](const Command& command, std::int64_t deadline_ms = 5000) {
    ask_for_subjects(
        stack, kNames, {"python3"}, [&](const std::string&) { return command; }, deadline_ms);
    EXPECT_FALSE(stack.subjects.at("torch").available);
    return stack.subjects.at("torch").why;
  };
  EXPECT_NE(answers({{"/bin/echo", "hello"}, {}}).find("python3 -m graphproof.subjects"),
            std::string::npos);
  EXPECT_EQ(answers({{"/bin/sleep", "60"}, {}}, 50),
            "python3 -m graphproof.subjects --json did not answer in 0 s");
  EXPECT_NE(answers({{"/no/such/program"}, {}}).find("python3 -m graphproof.subjects"),
            std::string::npos);
}

}  // namespace
}  // namespace graphproof::launcher

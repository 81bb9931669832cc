#include "launcher/watch/python_stacks.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include "reports/record/testing/scratch_folder.h"
#include "reports/record/text/file.h"

namespace graphproof::launcher {
namespace {

using Stack = std::vector<std::string>;

TEST(PythonStacks, TheMainThreadIsTheLastOne) {
  EXPECT_EQ(
      main_thread_stack("Thread 0x00007f01 (most recent call first):\n"
                        "  File \"/usr/lib/python3.12/threading.py\", line 359 in wait\n"
                        "\n"
                        "Current thread 0x00007f02 [MainThread] (most recent call first):\n"
                        "  File \"/site/torch/cuda/__init__.py\", line 1148 in synchronize\n"
                        "  File \"my \\\"train\\\".py\", line 34 in <module>\n"),
      (Stack{"/site/torch/cuda/__init__.py:1148 synchronize", "my \\\"train\\\".py:34 <module>"}));
}

TEST(PythonStacks, WhatIsNoStackIsNone) {
  for (const char* text :
       {"", "Current thread 0x1 (most recent call first):\n  <no Python frame>\n",
        "  File \"cut off", "  File \"a.py\", line 3", "noise\n"})
    EXPECT_EQ(main_thread_stack(text), Stack{}) << text;
}

int stacks = -1;
void answer(int) {
  constexpr std::string_view kText =
      "Current thread 0x1 (most recent call first):\n  File \"a.py\", line 3 in main\n";
  if (write(stacks, kText.data(), kText.size()) < 0) _exit(1);
}

TEST(PythonStacks, OnlyAProcessThatOffersAFileIsAsked) {
  const record::ScratchFolder folder;
  const int signal = SIGRTMAX - 3;
  // This process would die of the signal if it had no file.
  EXPECT_TRUE(ask_python({{"me", getpid()}, {"gone", 1 << 30}}, folder.path()).empty());
  stacks = memfd_create((kStacksFile + std::to_string(signal)).c_str(), MFD_CLOEXEC);
  ::signal(signal, answer);
  const auto found = ask_python({{"me", getpid()}}, folder.path());
  close(stacks);
  ::signal(signal, SIG_DFL);
  ASSERT_EQ(found.count("me"), 1u);
  EXPECT_EQ(found.at("me"), Stack{"a.py:3 main"});
  EXPECT_NE(record::read_text(folder.path() / "me.python").find("line 3 in main"),
            std::string::npos);
}

TEST(PythonStacks, AFileThatNamesAnotherSignalIsLeftAlone) {
  const record::ScratchFolder folder;
  const int file = memfd_create((kStacksFile + std::to_string(SIGKILL)).c_str(), MFD_CLOEXEC);
  EXPECT_TRUE(ask_python({{"me", getpid()}}, folder.path()).empty());
  close(file);
}

}  // namespace
}  // namespace graphproof::launcher

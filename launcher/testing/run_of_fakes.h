// For tests of the whole run loop: a run over mpirun with ranks that follow a script
// (fake_rank.cpp), in a folder of the test's own. The launcher may be this process or a child that
// the test kills.
#pragma once

#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "launcher/host/cgroup.h"
#include "launcher/host/child.h"
#include "launcher/host/processes.h"
#include "launcher/run/run.h"
#include "launcher/testing/fake_run.h"
#include "reports/outcome/summary.h"
#include "reports/record/run/journal.h"
#include "reports/record/testing/scratch_folder.h"
#include "reports/record/text/file.h"

namespace graphproof::launcher {

/// A launcher in a child of this process, which the test can interrupt and kill.
class Background {
 public:
  explicit Background(const std::function<reports::RunResult()>& launch) : pid_(fork()) {
    if (pid_ != 0) return;
    int code = 6;
    try {
      code = record::value(reports::exit_code(launch()));
    } catch (...) {
    }
    _exit(code);
  }
  ~Background() {
    if (!ended_) send(SIGKILL);
    wait();
  }
  void send(int signal) const { ::kill(pid_, signal); }
  int pid() const { return pid_; }
  bool ended() {
    if (!ended_) ended_ = waitpid(pid_, &status_, WNOHANG) == pid_;
    return ended_;
  }
  /// Its exit code; -1 after a signal.
  int wait() {
    for (int look = 0; look < 6000 && !ended(); ++look)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    EXPECT_TRUE(ended_) << "the launcher did not end";
    return ended_ && WIFEXITED(status_) ? WEXITSTATUS(status_) : -1;
  }

 private:
  int pid_ = 0, status_ = 0;
  bool ended_ = false;
};

/// One run folder; the test sets up the run in `setup` and reads what the user would in `notices`.
struct RunOfFakes : testing::Test {
  RunOfFakes() {
    std::filesystem::create_directories(folder);
    char digits[8];
    std::snprintf(digits, sizeof digits, "%04x", getpid() & 0xffff);
    setup = fake_setup(
        folder, std::string("20260101-000000-") + digits,
        std::filesystem::read_symlink("/proc/self/exe").parent_path() / "graphproof_fake_rank");
    listener.notice = [this](const std::string& text) { notices += text + "\n"; };
  }
  void SetUp() override {
    ASSERT_FALSE(find_program("mpirun", own_environment()).empty())
        << "this machine has no mpirun: ./graphproof installs it";
  }

  reports::RunResult go(std::vector<record::PlanLine> plan) {
    setup.plan = std::move(plan);
    return checked(run(setup, listener));
  }
  reports::RunResult go_on() { return checked(resume(setup, listener)); }

  reports::RunResult checked(reports::RunResult result) const {
    EXPECT_EQ(marked(), std::vector<std::string>{}) << "processes were left behind";
    EXPECT_EQ(host_folders(), std::vector<std::string>{}) << "folders were left behind";
    EXPECT_EQ(cgroups_of(setup.run.run_id + "."), std::vector<std::filesystem::path>{})
        << "control groups were left behind";
    return result;
  }

  /// The private folders of this run on this host.
  std::vector<std::string> host_folders() const {
    const std::string prefix = "graphproof-" + std::to_string(getuid()) + "-" +
                               setup.run.run_id.substr(setup.run.run_id.size() - 4) + "-";
    std::vector<std::string> names;
    for (const char* top : {"/tmp", "/dev/shm"})
      for (const auto& entry : std::filesystem::directory_iterator(top))
        if (entry.path().filename().string().starts_with(prefix)) names.push_back(entry.path());
    return names;
  }

  /// The processes of all batches of this run.
  std::vector<std::string> marked() const {
    std::vector<std::string> names;
    for (const Process& process : processes_of(0, setup.run.run_id + "."))
      names.push_back(std::to_string(process.pid) + " " + process.command);
    return names;
  }

  std::vector<record::Record> journal() const {
    return record::read_journal(folder / "journal.jsonl").records;
  }

  record::Context context(const std::string& case_id, int attempt = 1) const {
    const std::filesystem::path file =
        folder / "cases" / case_id / ("attempt-" + std::to_string(attempt)) / "context.json";
    return record::context_from(record::read_json(file), file);
  }

  bool wait_for(const std::function<bool()>& what) const {
    for (int look = 0; look < 2000;
         ++look, std::this_thread::sleep_for(std::chrono::milliseconds(10)))
      if (what()) return true;
    return false;
  }

  // The folder is not in /dev/shm, where ScratchFolder is by default, because the launcher looks
  // there for what ranks leave.
  const record::ScratchFolder scratch{"/tmp"};
  const std::filesystem::path folder = scratch.path() / "run";
  RunSetup setup;
  RunListener listener;
  std::string notices;
};

inline std::string verdict(const reports::RunResult& result, std::size_t index) {
  return std::string(result.cases.at(index).record.verdict.text());
}

}  // namespace graphproof::launcher

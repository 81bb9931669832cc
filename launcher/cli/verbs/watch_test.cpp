// The verb watch with small real processes. The launcher runs in a process of its own, because it
// takes signals over and gives its standard streams to the command. A shell script stands in for
// the judge.
#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <iostream>
#include <map>
#include <thread>

#include "launcher/backend/subjects.h"
#include "launcher/cli/testing/command_under_test.h"
#include "launcher/host/child.h"
#include "launcher/host/processes.h"
#include "launcher/watch/nccl_question.h"
#include "launcher/watch/probe_look.h"
#include "reports/record/text/file.h"
#include "reports/record/text/printable.h"
#include "reports/record/watched/watched_run.h"

namespace graphproof::cli {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

/// One check passes if there is a process, which is then said to have made a graph.
constexpr const char* kJudge = R"sh(#!/bin/sh
[ "$1" = --watched ] || exit 2
[ ! -e "$2/break" ] || { echo 'the judge is broken' >&2; exit 6; }
checks= graphs=
if [ -n "$(ls "$2/probe" 2>/dev/null)" ]; then
  checks='{"check":"D07.static_addresses","result":"pass","rank":null,"what":"no operand moved",
    "got":"1 block","want":"","why":"","next":""}'
  graphs='{"process":"p","executable":1,"signature":"","captured_at":"train.py:1 f","stack":[],
    "thread":"","stream":"","nodes":{},"kernels":[],"replays":1}'
fi
printf '{"schema":"graphproof-watched-checks/1","checks":[%s],"graphs":[%s],"figures":{},
  "notes":["memory: no snapshot was taken"]}' "$checks" "$graphs" >"$2/checks.json"
)sh";

std::string text_of(const fs::path& file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), {}};
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// True as soon as `happened` is, within ten seconds.
template <class Happened>
bool soon(const Happened& happened) {
  for (int look = 0; look < 1000; ++look) {
    if (happened()) return true;
    std::this_thread::sleep_for(10ms);
  }
  return false;
}

struct WatchTest : CommandUnderTest {
  WatchTest() {
    fs::create_directories(top / "bin");
    std::ofstream(top / "bin/graphproof-judge") << kJudge;
    chmod((top / "bin/graphproof-judge").c_str(), 0755);
    const fs::path real = build() / "bin/libgraphproof-probe.so";
    if (fs::exists(real))
      fs::copy_file(real, top / "bin/libgraphproof-probe.so");
    else
      std::ofstream(top / "bin/libgraphproof-probe.so") << "only its path is used";
    // Every process of a test carries the folder in its environment, by which leftovers are found.
    setenv("WATCH_TEST", top.c_str(), 1);
  }
  ~WatchTest() override {
    unsetenv("WATCH_TEST");
    for (const launcher::Process& left : leftovers()) kill(left.pid, SIGKILL);
  }

  static fs::path build() {
    const char* bin = std::getenv("GRAPHPROOF_BIN");
    return bin ? fs::path(bin).parent_path()
               : fs::read_symlink("/proc/self/exe").parent_path().parent_path();
  }
  static std::string fake_watched() { return build() / "tests/graphproof_fake_watched"; }

  /// Starts `graphproof watch` with these arguments in a process of its own.
  pid_t start(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), "watch");
    const pid_t pid = fork();
    if (pid != 0) return pid;
    const int in = open((top / "in").c_str(), O_RDONLY | O_CREAT, 0600);
    const int out = open((top / "out").c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    const int err = open((top / "err").c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    dup2(in, 0);
    dup2(out, 1);
    dup2(err, 2);
    if (chdir(top.c_str()) != 0) _exit(99);
    Surroundings surroundings{.catalogue = catalogue,
                              .command_line = arguments,
                              .out = std::cout,
                              .err = std::cerr,
                              .programs = top / "bin",
                              .runs = top / "runs"};
    const int exit_code = run_command_line(arguments, surroundings);
    std::cout.flush();
    _exit(exit_code);
  }

  /// A launcher that does not end is killed.
  static int exit_code_of(pid_t pid, std::chrono::seconds limit = 30s) {
    int status = 0;
    const auto deadline = std::chrono::steady_clock::now() + limit;
    while (waitpid(pid, &status, WNOHANG) == 0) {
      if (std::chrono::steady_clock::now() > deadline) kill(pid, SIGKILL);
      std::this_thread::sleep_for(5ms);
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }
  int watch(const std::vector<std::string>& arguments) const {
    return exit_code_of(start(arguments));
  }
  /// Watches a line of shell.
  int watch_shell(const std::string& script, std::vector<std::string> options = {}) const {
    options.insert(options.end(), {"--", "/bin/sh", "-c", script});
    return watch(options);
  }

  std::string out() const { return text_of(top / "out"); }
  std::string err() const { return text_of(top / "err"); }
  fs::path latest() const { return fs::canonical(top / "runs/latest"); }
  record::WatchedRun run() const {
    const fs::path file = latest() / "watched.json";
    return record::watched_run_from(record::read_json(file), file);
  }
  bool no_run() const { return !fs::exists(top / "runs"); }

  /// Processes of this test that still run, besides the test itself.
  std::vector<launcher::Process> leftovers() const {
    const std::string mark = "WATCH_TEST=" + top.string();
    std::vector<launcher::Process> found;
    for (const launcher::Process& process : launcher::running_processes())
      if (process.pid != getpid() &&
          has(launcher::proc_text("/proc/" + std::to_string(process.pid) + "/environ"), mark))
        found.push_back(process);
    return found;
  }
};

// The command as it is ---------------------------------------------------------------------------

TEST_F(WatchTest, ACommandWithAGraphPassesAndItsStreamsAreItsOwn) {
  file("in", "from outside\n");
  EXPECT_EQ(watch_shell("cat; echo oops >&2; " + fake_watched() + " exit 0"), 0) << err();
  EXPECT_TRUE(out().starts_with("from outside\n")) << out();
  EXPECT_TRUE(has(out(), "\npass: 1 check passed, none failed")) << out();
  EXPECT_TRUE(has(out(), "command: exit code 0 after ")) << out();
  EXPECT_TRUE(has(out(), "note: memory: no snapshot was taken")) << out();
  EXPECT_TRUE(has(err(), "oops\n")) << err();
  EXPECT_TRUE(has(text_of(latest() / "report.md"), "train.py:1 f"));
  EXPECT_TRUE(has(text_of(latest() / "page.html"), "train.py:1 f"));
  EXPECT_EQ(run().ending, "exited");
  EXPECT_EQ(run().exit_code, 0);
}

TEST_F(WatchTest, TheEnvironmentHasOnlyTheListedVariablesMore) {
  watch({"--", "/usr/bin/env", "-0"});
  const auto variables = run().environment;
  launcher::Environment seen;
  const std::string text = out();
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\0', at);
    if (end == std::string::npos) break;
    const std::string entry = text.substr(at, end - at);
    const std::size_t equals = entry.find('=');
    seen[entry.substr(0, equals)] = entry.substr(equals + 1);
    at = end + 1;
  }
  launcher::Environment want = launcher::own_environment();
  for (const auto& [name, value] : variables) want[name] = value;
  EXPECT_EQ(seen, want);
  EXPECT_TRUE(seen.at("GRAPHPROOF_PROBE_DIR").starts_with("/"));
}

TEST_F(WatchTest, AHostWithoutAGpuIsNamedWhereNothingWasWatched) {
  if (fs::exists("/dev/nvidiactl")) GTEST_SKIP() << "this host has a GPU";
  EXPECT_EQ(watch_shell("true"), 4);
  EXPECT_TRUE(has(out(), "note: GPUs: this host shows no GPU to its processes")) << out();
}

TEST_F(WatchTest, OutputIsNotHeldByTheLauncher) {
  EXPECT_EQ(watch_shell("head -c 100000000 /dev/zero"), 4);
  EXPECT_GT(fs::file_size(top / "out"), 100'000'000u);
}

TEST_F(WatchTest, WithJsonStandardOutputHoldsOneObjectAndTheCommandsGoesToStandardError) {
  EXPECT_EQ(watch_shell("echo hello; " + fake_watched() + " exit 0", {"--json"}), 0) << err();
  const auto value = nlohmann::json::parse(out());
  EXPECT_EQ(value.at("schema"), "graphproof-watched-report/1");
  EXPECT_EQ(value.at("verdict"), "pass");
  EXPECT_EQ(value.at("run").at("exit_code"), 0);
  EXPECT_EQ(value.at("checks").at("checks").at(0).at("check"), "D07.static_addresses");
  EXPECT_TRUE(has(err(), "hello\n")) << err();
  ASSERT_EQ(watch({"--attach-only", "--json"}), 0) << err();
  EXPECT_TRUE(nlohmann::json::parse(out()).at("environment").contains("GRAPHPROOF_PROBE_DIR"));
}

TEST_F(WatchTest, ACommandThatChangesItsFolderIsWatchedAllTheSame) {
  EXPECT_EQ(watch_shell("cd / && exec " + fake_watched() + " exit 0", {"--run-dir", "here"}), 0)
      << err();
  EXPECT_TRUE(fs::exists(top / "here/page.html"));
}

// Its end ----------------------------------------------------------------------------------------

TEST_F(WatchTest, EachEndingOfTheCommandHasItsVerdict) {
  struct Row {
    const char* name;
    std::string script;
    int exit_code;
    const char* line;
  };
  const Row rows[] = {
      {"no CUDA context", "true", 4, "unexercised: no process of the command made a CUDA context"},
      {"it fails before a context", "exit 3", 3,
       "command_failed: the command ended with exit code 3"},
      {"it fails afterwards", fake_watched() + " exit 7", 3,
       "command_failed: the command ended with exit code 7, and no check failed"},
      {"a signal kills it", "exec " + fake_watched() + " signal 11", 3,
       "command: signal 11 (Segmentation fault)"},
      {"a signal kills its child", fake_watched() + " signal 11", 3,
       "exit code 139, which a shell gives for signal 11"},
      {"it replaces itself", fake_watched() + " exit 0; exec " + fake_watched() + " exit 0", 0,
       "2 processes were watched"},
  };
  for (const Row& row : rows) {
    EXPECT_EQ(watch_shell(row.script), row.exit_code) << row.name << "\n" << err();
    EXPECT_TRUE(has(out(), row.line)) << row.name << "\n" << out();
  }
}

/// As torchrun does, which looks at its workers now and then and ends with 1 where one has failed.
/// `followed` is whether the launcher, its parent, holds a descriptor of the rank: from its look at
/// it to the moment at which it has seen its end.
TEST_F(WatchTest, TheSignalThatEndedARankIsNamed) {
  file("launch.py", R"py(
import os, pathlib, subprocess, sys, time

def followed(rank):
    for file in pathlib.Path(f'/proc/{os.getppid()}/fdinfo').iterdir():
        try:
            if f'\nPid:\t{rank.pid}\n' in file.read_text():
                return True
        except FileNotFoundError:
            pass
    return False

def wait_until_followed(rank, wanted):
    deadline = time.monotonic() + 20
    while followed(rank) != wanted and time.monotonic() < deadline:
        time.sleep(0.05)

ranks = [subprocess.Popen(sys.argv[1:]) for _ in range(2)]
for rank in ranks:
    wait_until_followed(rank, True)
for number, signal in ((1, 11), (0, 15)):
    ranks[number].send_signal(signal)
    wait_until_followed(ranks[number], False)
    ranks[number].wait()
sys.exit(1)
)py");
  EXPECT_EQ(watch({"--", "python3", "launch.py", fake_watched(), "wait"}), 3) << err();
  const record::WatchedRun seen = run();
  ASSERT_TRUE(seen.signalled && seen.signalled->size() == 2) << out();
  EXPECT_EQ(seen.signalled->at(0).signal, 11);
  EXPECT_EQ(seen.signalled->at(1).signal, 15);
  EXPECT_TRUE(has(out(), "exit code 1, and no check failed; " + seen.signalled->at(0).process +
                             " was ended by signal 11 (Segmentation fault)"))
      << out();
  EXPECT_TRUE(has(out(), "note: what came after it: " + seen.signalled->at(1).process)) << out();
}

TEST_F(WatchTest, NoProcessIsLeftWhereverItMovedTo) {
  EXPECT_EQ(watch_shell("sleep 1000 & setsid sleep 1000 & (setsid sh -c 'sleep 1000 & sleep 1000' "
                        "&) ; " +
                        fake_watched() + " fork"),
            0)
      << err();
  EXPECT_TRUE(leftovers().empty())
      << leftovers().size() << " processes, such as " << leftovers().front().command;
  EXPECT_TRUE(has(out(), "the command left it running, and it was ended")) << out();
}

TEST_F(WatchTest, ACommandThatIgnoresEverySignalIsEndedByTheSecondInterrupt) {
  const pid_t launcher = start(
      {"--", "/bin/sh", "-c", "trap '' INT TERM HUP; touch ready; while :; do sleep 0.1; done"});
  ASSERT_TRUE(soon([&] { return fs::exists(top / "ready"); }));
  kill(launcher, SIGINT);
  EXPECT_TRUE(soon([&] { return has(err(), "passed INT on to the command"); })) << err();
  kill(launcher, SIGINT);
  EXPECT_EQ(exit_code_of(launcher), 5) << err();
  EXPECT_TRUE(leftovers().empty());
  EXPECT_EQ(run().ending, "interrupted");
}

TEST_F(WatchTest, AnInterruptedCommandMayEndInItsOwnWayAndIsJudged) {
  for (const int signal : {SIGINT, SIGTERM}) {
    fs::remove(top / "ready");
    const pid_t launcher = start({"--", "/bin/sh", "-c",
                                  "trap 'echo saving; exit 0' INT TERM; " + fake_watched() +
                                      " exit 0; touch ready; while :; do sleep 0.1; done"});
    ASSERT_TRUE(soon([&] { return fs::exists(top / "ready"); }));
    kill(launcher, signal);
    EXPECT_EQ(exit_code_of(launcher), 5) << err();
    EXPECT_TRUE(out().starts_with("saving\n")) << out();
    EXPECT_TRUE(has(out(), "pass    D07.static_addresses")) << out();
    EXPECT_TRUE(has(out(), "interrupted: the command did not come to its end")) << out();
    EXPECT_EQ(run().exit_code, 0);
  }
}

TEST_F(WatchTest, ASchedulersWarningIsPassedOnAndEndsNothing) {
  const pid_t launcher = start({"--", "/bin/sh", "-c",
                                "trap 'echo warned; warned=1' USR1; touch ready; "
                                "while [ -z \"$warned\" ]; do sleep 0.1; done; " +
                                    fake_watched() + " exit 0"});
  ASSERT_TRUE(soon([&] { return fs::exists(top / "ready"); }));
  kill(launcher, SIGUSR1);
  EXPECT_EQ(exit_code_of(launcher), 0) << err();
  EXPECT_TRUE(out().starts_with("warned\n")) << out();
}

TEST_F(WatchTest, WhatAKilledLauncherLeftCanBeJudged) {
  const pid_t launcher = start({"--", fake_watched(), "wait"});
  ASSERT_TRUE(soon([&] {
    return fs::exists(top / "runs/latest/probe") && !fs::is_empty(top / "runs/latest/probe");
  }));
  kill(launcher, SIGKILL);
  exit_code_of(launcher);
  EXPECT_TRUE(soon([&] { return leftovers().empty(); })) << "the kernel ends the command";
  EXPECT_EQ(run().ending, "running");
  EXPECT_EQ(watch({"--finish", "latest"}), 5) << err();
  EXPECT_EQ(run().ending, "interrupted");
  EXPECT_TRUE(has(out(), "the launcher was killed before it")) << out();
}

// Other verbs ------------------------------------------------------------------------------------

TEST_F(WatchTest, AWatchedRunIsListedShownAndReportedByTheVerbsForRuns) {
  ASSERT_EQ(watch_shell(fake_watched() + " exit 0"), 0) << err();
  const std::string id = run().id;
  const auto listed = nlohmann::json::parse(cli({"list", "runs", "--json"}).out);
  ASSERT_EQ(listed.size(), 1u);
  EXPECT_EQ(listed[0].at("run"), id);
  EXPECT_EQ(listed[0].at("kind"), "watched");
  EXPECT_EQ(listed[0].at("verdict"), "pass");
  EXPECT_EQ(listed[0].at("exit_code"), 0);
  EXPECT_TRUE(has(cli({"list", "runs"}).out, "exit 0'")) << cli({"list", "runs"}).out;

  for (const std::string& name : {id, std::string("latest"), latest().string()}) {
    const Printed status = cli({"status", name});
    EXPECT_EQ(status.exit_code, 0) << status.err;
    EXPECT_TRUE(has(status.out, "watched run " + id + "  exited  /bin/sh -c")) << status.out;
    EXPECT_TRUE(has(status.out, "  ended\n")) << status.out;
    EXPECT_TRUE(has(status.out, "  pass: 1 check passed")) << status.out;
    const Printed report = cli({"report", name});
    EXPECT_EQ(report.exit_code, 0) << report.err;
    EXPECT_TRUE(has(report.out, "(watched run " + id)) << report.out;
  }
  const auto value = nlohmann::json::parse(cli({"report", "--json"}).out);
  EXPECT_EQ(value.at("schema"), "graphproof-watched-report/1");
  EXPECT_EQ(nlohmann::json::parse(cli({"status", "--json"}).out).at("verdict"), "pass");
}

TEST_F(WatchTest, StatusNamesTheDriverCallThatAProcessIsIn) {
  const pid_t launcher = start({"--", fake_watched(), "wait"});
  EXPECT_TRUE(soon([&] {
    return fs::exists(top / "runs/latest/watched.json") &&
           has(cli({"status"}).out, "inside cuStreamSynchronize");
  })) << cli({"status"}).out;
  const auto value = nlohmann::json::parse(cli({"status", "--json"}).out);
  EXPECT_EQ(value.at("state"), "running");
  EXPECT_EQ(value.at("processes").at(0).at("inside").at(0).at("call"), "cuStreamSynchronize");
  EXPECT_TRUE(value.at("verdict").is_null());
  kill(launcher, SIGKILL);
  exit_code_of(launcher);
  EXPECT_TRUE(has(cli({"status"}).out, "  interrupted  ")) << cli({"status"}).out;
}

TEST_F(WatchTest, ReportJudgesAWatchedRunThatWasNot) {
  ASSERT_EQ(watch_shell(fake_watched() + " exit 0"), 0) << err();
  fs::remove(latest() / "checks.json");
  EXPECT_EQ(cli({"report"}).exit_code, 0);
  EXPECT_TRUE(fs::exists(latest() / "checks.json"));
  std::ofstream(latest() / "break") << "";
  EXPECT_EQ(cli({"report"}).exit_code, 0) << "the judge is not asked again";
  EXPECT_EQ(cli({"report", "--judge-again"}).exit_code, 6);
}

TEST_F(WatchTest, VerbsForCasesSayThatAWatchedRunHasNone) {
  ASSERT_EQ(watch_shell(fake_watched() + " exit 0"), 0) << err();
  const Printed refused = cli({"resume", run().id});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_TRUE(has(refused.err, "a watched run has no cases")) << refused.err;
  EXPECT_TRUE(has(refused.err, "graphproof report ")) << refused.err;
}

// Hangs ------------------------------------------------------------------------------------------

TEST_F(WatchTest, TheFiguresOfAnEarlierRunAreTakenAlong) {
  const std::string program = fake_watched() + " exit 0";
  EXPECT_EQ(watch_shell(program), 0) << err();
  const fs::path earlier = latest();
  EXPECT_EQ(watch_shell(program, {"--against", "latest"}), 2) << "it has no figures";
  EXPECT_TRUE(has(err(), "no process of it launched a graph, or an older probe watched it"))
      << err();
  EXPECT_EQ(latest(), earlier) << "nothing was made";
  std::string checks = text_of(earlier / "checks.json");
  checks.replace(checks.find("\"figures\":{}"), 12,
                 R"("figures":{"steady_share":0.9,"graph_launches":40,"capture_ms":3})");
  std::ofstream(earlier / "checks.json") << checks;
  EXPECT_EQ(watch_shell("true; " + program, {"--against", "latest"}), 0) << err();
  EXPECT_EQ(run().against, earlier);
  EXPECT_EQ(run().earlier, (std::map<std::string, double>{{"steady_share", 0.9}}))
      << "another command may launch graphs less often";
  EXPECT_EQ(watch_shell(program, {"--against", earlier}), 0) << err();
  EXPECT_EQ(run().earlier,
            (std::map<std::string, double>{{"steady_share", 0.9}, {"graph_launches", 40}}));
  fs::remove(earlier / "checks.json");
  EXPECT_EQ(watch_shell(program, {"--against", earlier}), 2);
  EXPECT_TRUE(has(err(), "it was not judged")) << err();
}

TEST_F(WatchTest, AHangNamesTheDriverCallAndIsEnded) {
  for (const char* how : {"wait", "spin"}) {
    EXPECT_EQ(watch_shell(fake_watched() + " " + how + " & wait", {"--hang-after", "2s"}), 1)
        << how << err();
    const record::WatchedRun seen = run();
    EXPECT_EQ(seen.ending, "hung");
    ASSERT_EQ(seen.waiting.size(), 1u);
    EXPECT_EQ(seen.waiting[0].call, "cuStreamSynchronize");
    // A busy host looks less often, so the hang may be seen later than it is one.
    EXPECT_GE(seen.waiting[0].seconds, 2);
    EXPECT_TRUE(has(out(), "\nhang: " + seen.why)) << out();
    EXPECT_TRUE(has(out(), "(fake) has been inside cuStreamSynchronize for " +
                               record::fixed(seen.waiting[0].seconds, 0) + " s"))
        << out();
    EXPECT_TRUE(leftovers().empty());
    EXPECT_TRUE(has(text_of(latest() / "hang" / (seen.waiting[0].process + ".threads")),
                    "graphproof_fake"));
  }
}

TEST_F(WatchTest, AHangShowsWhatNcclSaysOfIt) {
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in place{};
  place.sin_family = AF_INET;
  place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof place;
  ASSERT_EQ(bind(listener, reinterpret_cast<sockaddr*>(&place), size), 0);
  ASSERT_EQ(listen(listener, 1), 0);
  getsockname(listener, reinterpret_cast<sockaddr*>(&place), &size);
  std::jthread service([listener] {
    const int client = accept(listener, nullptr, nullptr);
    char question[64];
    const ssize_t got = recv(client, question, sizeof question, 0);
    EXPECT_EQ(std::string(question, got > 0 ? static_cast<std::size_t>(got) : 0),
              "verbose status\n");
    const std::string answer =
        "Job summary\n===========\n\nWarnings\n========\n\n#0-0 (27a0) MISMATCH\n"
        "  1 rank has launched up to operation 40\n";
    send(client, answer.data(), answer.size(), MSG_NOSIGNAL);
    close(client);
  });
  const std::string address = "127.0.0.1:" + std::to_string(ntohs(place.sin_port));
  setenv("NCCL_RAS_ADDR", address.c_str(), 1);
  EXPECT_EQ(watch_shell(fake_watched() + " wait & wait", {"--hang-after", "1s"}), 1) << err();
  unsetenv("NCCL_RAS_ADDR");
  close(listener);
  EXPECT_TRUE(has(out(), "; NCCL: #0-0 (27a0) MISMATCH")) << out();
  EXPECT_TRUE(has(out(), "1 rank has launched up to operation 40")) << out();
  EXPECT_TRUE(has(text_of(latest() / "report.md"), "## What NCCL says of its communicators"));
  EXPECT_TRUE(has(text_of(latest() / "page.html"), "launched up to operation 40"));
  EXPECT_TRUE(has(text_of(latest() / "hang/nccl-ras.txt"), "Job summary"));
  EXPECT_EQ(run().ras.value_or(std::vector<std::string>{}).size(), 2u);
}

TEST_F(WatchTest, ACommandThatMakesProgressOrHasNoCudaDoesNotHang) {
  // A step takes a twentieth of the time that would be a hang, so a host that holds the program up
  // for a while makes none.
  EXPECT_EQ(watch({"--hang-after", "2s", "--", fake_watched(), "steps", "25"}), 0) << out();
  EXPECT_EQ(watch_shell("sleep 2", {"--hang-after", "500ms"}), 4) << out();
  EXPECT_EQ(run().ending, "exited");
}

// Bad input --------------------------------------------------------------------------------------

TEST_F(WatchTest, ACommandThatCannotBeStartedIsRefusedBeforeAnythingIsMade) {
  file("data", "no program");
  struct Row {
    std::vector<std::string> arguments;
    const char* got;
    const char* next;
  };
  const Row rows[] = {
      {{}, "nothing after `--`", "graphproof watch -- python3 train.py"},
      {{"--"}, "nothing after `--`", "graphproof watch -- python3 train.py"},
      {{"--", "no-such-program"}, "`no-such-program` is not in PATH", "check its name"},
      {{"--", "data"}, "`data` is not in PATH", "it is in this folder: graphproof watch -- ./data"},
      {{"--", "./none"}, "`./none` does not exist", "check its name"},
      {{"--", "./data"}, "`./data` may not be executed", "chmod +x it, or name its interpreter"},
      {{"--", "/tmp"}, "`/tmp` is a folder", "name a program in it"},
      {{"--profile", "most", "--", "true"}, "`most`", "graphproof watch --help"},
      {{"--graph-share", "90", "--", "true"}, "90", "0.9 asks for 90 % of the kernels"},
      {{"--against", "latest", "--", "true"},
       "`latest`",
       "graphproof watch -- COMMAND... starts one"},
      {{"--against", "r", "--finish", "r"}, "r", "give --against when the run begins"},
      {{"--hang-after", "", "--", "true"}, "``", "a long one never ends"},
      {{"--attach-only", "--form", "fish"}, "`fish`", "graphproof watch --attach-only --form"},
      {{"--form", "docker", "--", "true"},
       "docker",
       "graphproof watch --attach-only --form docker"},
      {{"--finish", "latest"}, "`latest`", "graphproof watch -- COMMAND... starts one"},
      {{"--finish", "latest", "--", "true"}, "true", "leave out `--`"},
  };
  for (const Row& row : rows) {
    EXPECT_EQ(watch(row.arguments), 2) << row.got;
    EXPECT_TRUE(has(err(), std::string("\n  got   ") + row.got)) << err();
    EXPECT_TRUE(has(err(), std::string("\n  next  ") + row.next)) << err();
    EXPECT_TRUE(no_run()) << row.got;
  }
}

TEST_F(WatchTest, AFileThatOnlyLooksLikeAProgramIsNotStarted) {
  file("junk", "\x01\x02 no program\n");
  chmod((top / "junk").c_str(), 0755);
  EXPECT_EQ(watch({"--", "./junk"}), 3);
  EXPECT_TRUE(has(out(), "not_started: can't start './junk': Exec format error")) << out();
  EXPECT_EQ(run().ending, "not_started");
}

TEST_F(WatchTest, AFolderThatCannotBeUsedIsRefused) {
  EXPECT_EQ(watch({"--run-dir", "/proc/graphproof", "--", "true"}), 2);
  EXPECT_TRUE(has(err(), "can't make the run folder")) << err();
  fs::create_directories(top / "full/of");
  EXPECT_EQ(watch({"--run-dir", "full", "--", "true"}), 2);
  EXPECT_TRUE(has(err(), "--run-dir is taken")) << err();
}

TEST_F(WatchTest, AMissingProbeOrJudgeIsNamedBeforeTheCommandRuns) {
  fs::rename(top / "bin/libgraphproof-probe.so", top / "probe");
  EXPECT_EQ(watch_shell("touch ran"), 2);
  EXPECT_TRUE(has(err(), "the probe is missing")) << err();
  fs::rename(top / "probe", top / "bin/libgraphproof-probe.so");
  fs::remove(top / "bin/graphproof-judge");
  EXPECT_EQ(watch_shell("touch ran"), 2);
  EXPECT_TRUE(has(err(), "graphproof-judge")) << err();
  EXPECT_FALSE(fs::exists(top / "ran"));
}

TEST_F(WatchTest, ABrokenJudgeIsNoVerdict) {
  EXPECT_EQ(watch_shell("touch here/break", {"--run-dir", "here"}), 6);
  EXPECT_TRUE(has(out(), "not_judged: the judge left no checks.json")) << out();
  EXPECT_TRUE(has(err(), "graphproof-judge ended with exit code 6: the judge is broken")) << err();
}

// What is not watched ----------------------------------------------------------------------------

TEST_F(WatchTest, AProcessWithoutTheProbeIsListedWithTheReason) {
  // Any file of this name counts as the driver.
  fs::copy_file(fake_watched(), top / "libcuda.so.1");
  const std::string program = (top / "libcuda.so.1").string();
  // The launcher looks as often as the host lets it, so all processes stay until it has looked: the
  // last one hangs, which takes a look, and begins when the others have the driver.
  const std::string has_driver = "until grep -q libcuda /proc/$!/maps; do sleep 0.1; done; ";
  EXPECT_EQ(
      watch_shell("env -i WATCH_TEST=$WATCH_TEST " + program + " wait & " + has_driver +
                      "CUDA_INJECTION64_PATH=/opt/other.so GRAPHPROOF_PROBE_DIR=/nonexistent " +
                      program + " wait & " + has_driver + program + " fork; " + program + " wait",
                  {"--hang-after", "1s"}),
      1)
      << err();
  const record::WatchedRun seen = run();
  EXPECT_EQ(seen.ending, "hung");
  ASSERT_EQ(seen.unwatched.size(), 2u) << "not the forked child of a watched process\n" << out();
  EXPECT_TRUE(has(seen.unwatched[0].command, "libcuda.so.1 wait"));
  EXPECT_TRUE(has(out(), "without CUDA_INJECTION64_PATH: something cleared the environment"));
  EXPECT_TRUE(has(out(), "began with CUDA_INJECTION64_PATH=/opt/other.so")) << out();
}

TEST_F(WatchTest, ACommandThatDropsItsPrivilegesIsWatchedAllTheSame) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  const launcher::Environment own = launcher::own_environment();
  if (launcher::find_program("setpriv", own).empty()) GTEST_SKIP() << "no setpriv";
  chmod(top.c_str(), 0711);
  fs::copy_file(fake_watched(), top / "program");
  EXPECT_EQ(watch({"--", "setpriv", "--reuid=65534", "--regid=65534", "--clear-groups",
                   (top / "program").string(), "exit", "0"}),
            0)
      << err();
  struct stat facts{};
  ASSERT_EQ(stat((latest() / "probe").c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 07777, 01777u);
}

TEST_F(WatchTest, TheRunIsPrivateWhereNobodyElseCanBeMeant) {
  if (geteuid() == 0) GTEST_SKIP() << "root's commands may become other users";
  watch_shell("true");
  struct stat facts{};
  ASSERT_EQ(stat(latest().c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777, 0700u);
}

/// Of a process that a container hides the folder from, nothing is seen, and CUDA says nothing.
TEST_F(WatchTest, AProcessThatDoesNotSeeTheFolderOfTheRunKeepsItFromPassing) {
  if (std::system("unshare -m true 2>/dev/null") != 0)
    GTEST_SKIP() << "this user may make no mount namespace";
  fs::copy_file(fake_watched(), top / "libcuda.so.1");
  file("hide.sh", R"sh(
followed() { grep -q "^Pid:[[:space:]]*$1\$" /proc/$PPID/fdinfo/* 2>/dev/null; }
unshare -m sh -c "mount -t tmpfs none $WATCH_TEST/runs && exec $WATCH_TEST/libcuda.so.1 wait" &
hidden=$!
until grep -q libcuda /proc/$hidden/maps; do sleep 0.1; done
"$1" wait &
watched=$!
until followed $watched; do sleep 0.1; done  # the launcher has looked at both
sleep 0.5
kill $hidden $watched
wait
exit 0
)sh");
  EXPECT_EQ(watch({"--", "/bin/sh", "hide.sh", fake_watched()}), 4) << out() << err();
  EXPECT_TRUE(has(out(), "pass    D07.static_addresses")) << out();
  EXPECT_TRUE(has(out(), "\nunexercised: process ")) << out();
  EXPECT_TRUE(has(out(), ") ran without the probe or its folder: " + latest().string() +
                             "/probe does not exist where it runs"))
      << out();
  for (const char* part : {"\n    got   ", "\n    want  the probe and the folder of the run under",
                           "\n    why   CUDA says nothing", "\n    next  give the container"})
    EXPECT_TRUE(has(out(), part)) << part << "\n" << out();
  EXPECT_TRUE(has(text_of(latest() / "report.md"), "## Without evidence"));
  EXPECT_TRUE(has(text_of(latest() / "page.html"), "Without evidence"));
  const auto report = nlohmann::json::parse(cli({"report", "--json"}).out);
  EXPECT_EQ(report.at("without_evidence").at("want"),
            "the probe and the folder of the run under the same paths there");
  ASSERT_EQ(run().unwatched.size(), 1u);
  EXPECT_EQ(run().unwatched[0].hidden, latest() / "probe");
}

/// Waits until the launcher has looked at both processes, and ends them.
constexpr const char* kUntilSeen = R"sh(
followed() { grep -q "^Pid:[[:space:]]*$1\$" /proc/$PPID/fdinfo/* 2>/dev/null; }
until_seen() {
  until followed $2; do sleep 0.1; done
  kill $1 $2
  wait
}
)sh";

TEST_F(WatchTest, AProcessThatUsedCudaUnseenKeepsTheRunFromPassing) {
  fs::copy_file(fake_watched(), top / "libcuda.so.1");
  file("clear.sh", std::string(kUntilSeen) + R"sh(
env -i WATCH_TEST="$WATCH_TEST" "$WATCH_TEST/libcuda.so.1" wait &
cleared=$!
until grep -q libcuda /proc/$cleared/maps; do sleep 0.1; done
"$1" wait &
until_seen $cleared $!
exit 0
)sh");
  EXPECT_EQ(watch({"--", "/bin/sh", "clear.sh", fake_watched()}), 4) << out() << err();
  EXPECT_TRUE(has(out(), "pass    D07.static_addresses")) << out();
  EXPECT_TRUE(has(out(),
                  "libcuda.so.1 wait) was not watched: it has libcuda.so.1 loaded and began "
                  "without CUDA_INJECTION64_PATH"))
      << out();
  EXPECT_TRUE(has(out(), "\n    next  let it keep the variables")) << out();
}

/// A stand-in for docker, which waits as `docker run` does. What it starts descends from a daemon.
TEST_F(WatchTest, WhatAContainersClientStartsKeepsTheRunFromPassingUnlessItLeftEvidence) {
  fs::create_directories(top / "tools");
  file("tools/docker", "#!/bin/sh\nwhile :; do sleep 0.1; done\n");
  chmod((top / "tools/docker").c_str(), 0755);
  file("train.sh", std::string(kUntilSeen) + R"sh(
"$WATCH_TEST/tools/docker" run $2 image train &
client=$!
until grep -q docker /proc/$client/cmdline; do sleep 0.1; done
[ -z "$2" ] || GRAPHPROOF_FAKE_HOST=box "$1" exit 0
"$1" wait &
until_seen $client $!
exit 0
)sh");
  EXPECT_EQ(watch({"--", "/bin/sh", "train.sh", fake_watched()}), 4) << out() << err();
  EXPECT_TRUE(has(out(), "\nunexercised: process ")) << out();
  EXPECT_TRUE(has(out(),
                  "tools/docker run image train) started programs where the probe did not "
                  "follow: no evidence from where docker run starts them"))
      << out();
  const std::string next = "`docker run -e CUDA_INJECTION64_PATH -e GRAPHPROOF_PROBE_DIR ";
  EXPECT_TRUE(has(out(), next)) << out();
  EXPECT_TRUE(has(out(), "-v '" + latest().string() + ":" + latest().string() + "'")) << out();
  EXPECT_TRUE(has(err(), "starts programs where the probe does not follow; to watch them, hand"))
      << "it is said while the command runs\n"
      << err();
  EXPECT_TRUE(has(text_of(latest() / "report.md"), "docker run"));
  ASSERT_TRUE(run().elsewhere);
  EXPECT_EQ(run().elsewhere->at(0).by, "docker run");

  EXPECT_EQ(watch({"--", "/bin/sh", "train.sh", fake_watched(), "-eCUDA_INJECTION64_PATH"}), 0)
      << out() << err();
  EXPECT_FALSE(run().elsewhere);
  EXPECT_FALSE(has(err(), "where the probe does not follow")) << err();

  EXPECT_EQ(watch({"--without-cuda", "docker", "--", "/bin/sh", "train.sh", fake_watched()}), 0)
      << out() << err();
  EXPECT_TRUE(has(out(),
                  "note: what these start was not looked for, since --without-cuda names "
                  "them: docker"))
      << out();
}

TEST_F(WatchTest, AContainersClientThatEndsAtOnceIsKnownByTheCommandItself) {
  fs::create_directories(top / "tools");
  file("tools/docker", "#!/bin/sh\nexit 0\n");
  chmod((top / "tools/docker").c_str(), 0755);
  EXPECT_EQ(watch({"--", (top / "tools/docker").string(), "run", "-d", "image"}), 4) << err();
  EXPECT_TRUE(has(out(), "made a CUDA context, and what docker run started was not seen")) << out();
}

// Several hosts ----------------------------------------------------------------------------------

struct WatchedHostsTest : WatchTest {
  /// Words that start the words after them once on each of the hosts `one` and `two`, which are
  /// this one. As behind ssh, what is started has nothing of the launcher's environment. Each has
  /// a folder for temporary files of its own, since Open MPI's daemons keep files of one job in
  /// one place of a host: two that shared it truncated each other's map of the machine, and one of
  /// them died of it.
  std::vector<std::string> on_two_hosts() const {
    file("rsh",
         "#!/bin/sh\nhost=$1; shift; tmp=" + top.string() +
             "/$host; mkdir -p \"$tmp\"\n"
             "exec env -i PATH=\"$PATH\" HOME=/tmp TMPDIR=\"$tmp\" GRAPHPROOF_FAKE_HOST=$host "
             "/bin/sh -c \"$*\"\n");
    chmod((top / "rsh").c_str(), 0755);
    return {"--",
            "mpirun",
            "--allow-run-as-root",
            "--mca",
            "plm",
            "rsh",
            "--mca",
            "plm_rsh_agent",
            (top / "rsh").string(),
            "--mca",
            "oob_tcp_if_include",
            "lo",
            "--host",
            "one:1,two:1"};
  }
  /// The same for a torchrun on each host, whose two workers are `worker`; empty without PyTorch.
  std::vector<std::string> torchrun_on_two_hosts(const std::vector<std::string>& worker) const {
    const launcher::Environment own = launcher::own_environment();
    for (const std::string& python : launcher::pythons(own)) {
      if (launcher::find_program(python, own).empty()) continue;
      const launcher::Output asked =
          launcher::run_to_end({{python, "-c", "import torch.distributed.run"}, own}, 60'000);
      if (asked.timed_out || asked.exit != launcher::Exit{}) continue;
      std::vector<std::string> words = on_two_hosts();
      words.insert(words.end(),
                   {python, "-m", "torch.distributed.run", "--nnodes", "2", "--nproc-per-node", "2",
                    "--rdzv-backend", "c10d", "--rdzv-endpoint", launcher::own_ras_address(),
                    "--rdzv-id", "watch-test", "--no-python"});
      words.insert(words.end(), worker.begin(), worker.end());
      return words;
    }
    return {};
  }
  /// How many processes of each host were watched.
  std::map<std::string, int> watched() const {
    std::map<std::string, int> hosts;
    for (const auto& entry : fs::directory_iterator(latest() / "probe"))
      ++hosts[entry.path().filename().string().substr(0, 3)];
    return hosts;
  }
  /// Whether one of them still runs. They have nothing of the test in their environment.
  bool some_run() const {
    for (const launcher::ProbeLook& probe : launcher::look_at_probes(latest() / "probe"))
      if (launcher::running_process(static_cast<int>(probe.pid))) return true;
    return false;
  }
};

TEST_F(WatchedHostsTest, RanksThatMpirunStartsOnOtherHostsAreWatched) {
  std::vector<std::string> words = on_two_hosts();
  words.insert(words.end(), {fake_watched(), "exit", "0"});
  EXPECT_EQ(watch(words), 0) << out() << err();
  EXPECT_TRUE(has(out(), "2 processes were watched")) << out();
  EXPECT_EQ(watched(), (std::map<std::string, int>{{"one", 1}, {"two", 1}}));
  EXPECT_FALSE(some_run());
}

/// The two meet at a rendezvous of their own and make one job of four ranks.
TEST_F(WatchedHostsTest, WorkersOfATorchrunOnEachHostHaveOneVerdict) {
  const std::vector<std::string> sound = torchrun_on_two_hosts({fake_watched(), "exit", "0"});
  if (sound.empty()) GTEST_SKIP() << "no Python here has PyTorch";
  EXPECT_EQ(exit_code_of(start(sound), 100s), 0) << out() << err();
  EXPECT_TRUE(has(out(), "4 processes were watched")) << out();
  EXPECT_EQ(watched(), (std::map<std::string, int>{{"one", 2}, {"two", 2}}));

  const std::string worker =
      "[ $RANK != 3 ] || exec " + fake_watched() + " exit 7; exec " + fake_watched() + " wait";
  EXPECT_EQ(exit_code_of(start(torchrun_on_two_hosts({"/bin/sh", "-c", worker})), 100s), 3)
      << out() << err();
  EXPECT_TRUE(has(out(), "command_failed: the command ended with exit code ")) << out();
  EXPECT_TRUE(has(err(), "exitcode  : 7")) << "torchrun's own report\n" << err();
  EXPECT_EQ(watched(), (std::map<std::string, int>{{"one", 2}, {"two", 2}}));
  EXPECT_FALSE(some_run());
}

// Started by hand --------------------------------------------------------------------------------

TEST_F(WatchTest, TheLinesToSetByHandAreForEvalAndTheRunIsJudgedAfterwards) {
  ASSERT_EQ(watch({"--attach-only", "--run-dir", "here"}), 0) << err();
  const std::string lines = out();
  EXPECT_TRUE(has(lines, "export CUDA_INJECTION64_PATH='" + (top / "bin").string()));
  EXPECT_TRUE(has(err(), "graphproof watch --finish " + (top / "here").string())) << err();
  const std::string script = lines + fake_watched() + " exit 0";
  ASSERT_EQ(std::system(("/bin/sh -c \"" + script + "\"").c_str()), 0);
  EXPECT_EQ(watch({"--finish", "here"}), 0) << err();
  EXPECT_TRUE(has(out(), "command: not known: graphproof did not start it")) << out();
  EXPECT_EQ(run().ending, "attached");
  EXPECT_TRUE(has(out(), "note: processes without the variables: ")) << out();
}

TEST_F(WatchTest, TheVariablesAreOfferedForContainersAndForOtherHostsToo) {
  ASSERT_EQ(watch({"--attach-only", "--run-dir", "box", "--form", "docker"}), 0) << err();
  const std::string folder = (top / "box").string();
  EXPECT_TRUE(out().starts_with("-e CUDA_INJECTION64_PATH='" + (top / "bin").string())) << out();
  EXPECT_TRUE(out().ends_with(" -v '" + folder + ":" + folder + "'\n")) << out();
  ASSERT_EQ(watch({"--attach-only", "--run-dir", "far", "--form", "env"}), 0) << err();
  std::string words = out();
  words.pop_back();
  ASSERT_EQ(std::system(("env -i " + words + " " + fake_watched() + " exit 0").c_str()), 0);
  EXPECT_EQ(watch({"--finish", "far"}), 0) << err();
  EXPECT_TRUE(has(out(), "1 process was watched")) << out();
}

TEST_F(WatchTest, AProcessThatStillRunsIsNamedWhenItsRunIsJudged) {
  ASSERT_EQ(watch({"--attach-only"}), 0) << err();
  const pid_t process = fork();
  if (process == 0) {
    setenv("GRAPHPROOF_PROBE_DIR", (top / "runs/latest/probe").c_str(), 1);
    execl(fake_watched().c_str(), "graphproof_fake_watched", "wait", nullptr);
    _exit(127);
  }
  // The magic of the file is written last.
  ASSERT_TRUE(soon([&] {
    for (const auto& entry : fs::directory_iterator(top / "runs/latest/probe"))
      if (text_of(entry.path()).starts_with("GPPROBE1")) return true;
    return false;
  }));
  EXPECT_EQ(watch({"--finish", "latest"}), 0) << err();
  EXPECT_TRUE(has(out(), "process " + std::to_string(process) + ": it still runs")) << out();
  kill(process, SIGKILL);
  waitpid(process, nullptr, 0);
}

// The real probe ---------------------------------------------------------------------------------

struct ProbedWatchTest : WatchTest {
  void SetUp() override {
    player = build() / "tests/probe_player";
    if (!fs::exists(player) || !fs::exists(build() / "bin/libgraphproof-probe.so"))
      GTEST_SKIP() << "this build has no probe: it needs the headers of CUDA";
    fakes = build() / "tests/fake_cuda";
    setenv("LD_LIBRARY_PATH", fakes.c_str(), 1);
  }
  void TearDown() override {
    unsetenv("LD_LIBRARY_PATH");
    unsetenv("CUDA_INJECTION64_PATH");
  }
  fs::path player, fakes;
};

TEST_F(ProbedWatchTest, CudaLoadsTheProbeAndItsFilesAreInTheRun) {
  EXPECT_EQ(watch_shell("cd / && " + player.string() + " kinds && " + player.string() + " forks"),
            0)
      << err();
  EXPECT_TRUE(has(out(), "2 processes were watched")) << out();
  EXPECT_TRUE(run().unwatched.empty());
}

TEST_F(ProbedWatchTest, AHangNamesTheLineOfThePythonProgram) {
  const std::string python =
      std::string(std::getenv("GRAPHPROOF_SOURCE")) + "/fixtures/probe/testing/python";
  setenv("PYTHONPATH", python.c_str(), 1);
  EXPECT_EQ(watch({"--hang-after", "1s", "--", "python3", python + "/program.py", "sleeps"}), 1)
      << err();
  unsetenv("PYTHONPATH");
  EXPECT_TRUE(has(out(), ": Python is at " + python + "/program.py:")) << out();
  EXPECT_TRUE(has(out(), " sleeps, called from ")) << out();
  const record::WatchedRun seen = run();
  ASSERT_TRUE(seen.stacks && seen.stacks->size() == 1) << out();
  const auto& [process, stack] = *seen.stacks->begin();
  EXPECT_TRUE(stack.at(0).ends_with(" sleeps")) << stack.at(0);
  EXPECT_TRUE(has(text_of(latest() / "hang" / (process + ".python")), "in sleeps"));
  EXPECT_TRUE(has(text_of(latest() / "report.md"), "program.py:"));
  EXPECT_TRUE(has(text_of(latest() / "page.html"), "Where Python is"));
}

TEST_F(ProbedWatchTest, TheProgramsOwnInjectedLibraryIsLoadedToo) {
  setenv("CUDA_INJECTION64_PATH", (fakes / "libnext_library.so").c_str(), 1);
  EXPECT_EQ(watch({"--", player.string(), "init"}), 0) << err();
  EXPECT_TRUE(has(err(), "the next library is there\n")) << err();
  EXPECT_TRUE(has(out(), "note: driver calls: CUPTI is left to ")) << out();
}

}  // namespace
}  // namespace graphproof::cli

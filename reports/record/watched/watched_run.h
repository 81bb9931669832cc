// watched.json: a watched run as the launcher saw it: the command, how it was watched, and how it
// ended. The launcher writes the file when the run begins, with the ending `running`, and again at
// the end.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reports/record/evidence/table/field_table.h"

namespace graphproof::record {

inline constexpr std::string_view kWatchedRunSchema = "graphproof-watched/1";
/// Its name in the folder of the run, and the folder of the files that probes write.
inline constexpr std::string_view kWatchedRunFile = "watched.json", kProbeFolder = "probe";

/// A process of the command that used CUDA, or may have, and left no evidence.
struct UnwatchedProcess {
  std::int64_t pid = 0;
  std::string command;
  std::string why;
  std::optional<std::string> hidden;
  std::optional<std::string> next;

  bool operator==(const UnwatchedProcess&) const = default;

  template <class Visitor>
  static void fields(Visitor& field) {
    field("pid", &UnwatchedProcess::pid, "process id", 4711, kPositive);
    field("command", &UnwatchedProcess::command, "its command line, shortened", "python3 worker.py",
          kFilled);
    field("why", &UnwatchedProcess::why, "why there is no evidence of it",
          "it has libcuda.so.1 loaded and runs without CUDA_INJECTION64_PATH", kFilled);
    field("hidden", &UnwatchedProcess::hidden,
          "what of the probe and its folder does not exist where the process runs, such as in a "
          "container; absent if both do",
          "/data/runs/20261124-101500-4a1f/probe");
    field("next", &UnwatchedProcess::next,
          "what makes it watched; absent in runs of older versions",
          "let it begin with the variables that watch sets", kFilled);
  }
};

/// A command that starts programs which neither descend from it nor have its environment, such as
/// `docker run`, and from whose place no evidence came.
struct StartedElsewhere {
  std::int64_t pid = 0;
  std::string command;
  std::string by;
  std::string next;

  bool operator==(const StartedElsewhere&) const = default;

  template <class Visitor>
  static void fields(Visitor& field) {
    field("pid", &StartedElsewhere::pid, "process id of the command", 4711, kPositive);
    field("command", &StartedElsewhere::command, "its command line, shortened",
          "docker run --gpus all image python3 train.py", kFilled);
    field("by", &StartedElsewhere::by, "which command it is", "docker run", kFilled);
    field("next", &StartedElsewhere::next, "what makes watched what it starts",
          "hand the variables of the probe on", kFilled);
  }
};

/// A driver call in which a thread was when the command stopped making progress.
struct WaitingThread {
  std::string process;
  std::int64_t pid = 0;
  std::int64_t thread = 0;
  std::string name;
  std::string call;
  double seconds = 0;

  bool operator==(const WaitingThread&) const = default;

  template <class Visitor>
  static void fields(Visitor& field) {
    field("process", &WaitingThread::process, "name of its probe's file, without the ending",
          "node1.4711", kFilled);
    field("pid", &WaitingThread::pid, "process id", 4711, kPositive);
    field("thread", &WaitingThread::thread, "thread id", 4712, kPositive);
    field("name", &WaitingThread::name, "name of the thread", "python3");
    field("call", &WaitingThread::call, "driver call that began and did not return",
          "cuStreamSynchronize", kFilled);
    field("seconds", &WaitingThread::seconds, "how long the thread has been in it (s)", 600.0,
          kCount);
  }
};

/// A watched process that a signal ended, not one of the launcher's.
struct SignalledProcess {
  std::string process;
  std::int64_t signal = 0;

  bool operator==(const SignalledProcess&) const = default;

  template <class Visitor>
  static void fields(Visitor& field) {
    field("process", &SignalledProcess::process, "name of its probe's file, without the ending",
          "node1.4711", kFilled);
    field("signal", &SignalledProcess::signal, "the signal", 11, kPositive);
  }
};

/// See the top of this file. Endings:
///   running       the launcher has not ended the run; if it is gone, it was killed
///   exited        the command ended by itself with `exit_code`
///   signalled     `signal` killed the command, and the launcher did not send it
///   hung          the launcher killed the command since nothing moved any more; `why` says what
///   interrupted   the user interrupted the launcher (Ctrl-C, SIGTERM), which ended the command
///   not_started   the command could not be started; `why` says why
///   attached      the launcher did not start the command (`watch --attach-only`) and does not
///                 know how it ended
struct WatchedRun {
  std::string id;
  std::vector<std::string> command;
  std::string folder;
  std::string host;
  std::string profile = "quick";
  bool cupti = true;
  std::string started;
  double seconds = 0;
  std::string ending = "running";
  std::optional<std::int64_t> exit_code;
  std::optional<std::int64_t> signal;
  std::string why;
  std::vector<WaitingThread> waiting;
  std::optional<std::map<std::string, std::vector<std::string>>> stacks;
  std::optional<std::vector<std::string>> ras;
  std::vector<UnwatchedProcess> unwatched;
  std::optional<std::vector<StartedElsewhere>> elsewhere;
  std::optional<std::vector<SignalledProcess>> signalled;
  std::optional<std::vector<std::string>> without_cuda;
  std::optional<double> expected_graph_share;
  std::optional<std::string> against;
  std::optional<std::map<std::string, double>> earlier;
  std::map<std::string, std::string> environment;
  std::map<std::string, std::string> versions;
  std::vector<std::string> notes;

  bool operator==(const WatchedRun&) const = default;

  /// Whether the command came to a bad end by itself.
  bool command_failed() const {
    return ending == "signalled" || (ending == "exited" && exit_code.value_or(1) != 0);
  }

  template <class Visitor>
  static void fields(Visitor& field) {
    field("id", &WatchedRun::id, "id of the run", "20261124-101500-4a1f", kFilled);
    field("command", &WatchedRun::command,
          "the command and its arguments; empty if it is not known",
          JsonText{R"(["torchrun", "--nproc-per-node", "2", "train.py"])"});
    field("folder", &WatchedRun::folder, "the command's working directory", "/data/train", kFilled);
    field("host", &WatchedRun::host, "the host of the launcher", "node1", kFilled);
    field("profile", &WatchedRun::profile, "how much the probes record", "quick",
          {.one_of = "quick|full"});
    field("cupti", &WatchedRun::cupti, "whether the probes may subscribe to driver calls", true);
    field("started", &WatchedRun::started, "when it began (UTC)", "2026-11-24T10:15:00Z", kFilled);
    field("seconds", &WatchedRun::seconds, "how long the command ran (s)", 61.5, kCount);
    field("ending", &WatchedRun::ending, "how it ended", "exited",
          {.one_of = "running|exited|signalled|hung|interrupted|not_started|attached"});
    field("exit_code", &WatchedRun::exit_code, "exit code of the command, if it exited", 0, kCount);
    field("signal", &WatchedRun::signal, "signal that killed the command, if one did", 11,
          kPositive);
    field("why", &WatchedRun::why, "of hung and not_started, what happened; else empty", "");
    field("waiting", &WatchedRun::waiting, "of hung, the driver calls that had not returned");
    field("stacks", &WatchedRun::stacks,
          "of hung, where the main threads of Python programs were, by the name of the process: "
          "FILE:LINE FUNCTION, the innermost call first. All threads are in hang/NAME.python",
          JsonText{R"({"node1.4711": ["train.py:34 <module>"]})"});
    field("ras", &WatchedRun::ras,
          "of hung, what NCCL's RAS service said of errors and warnings, or why it said nothing; "
          "absent if no process used NCCL. The whole answer is in hang/nccl-ras.txt",
          JsonText{R"(["#0-0 (27a079b828ff1a75) MISMATCH"])"});
    field("unwatched", &WatchedRun::unwatched,
          "processes of the command that used CUDA, or may have, and left no evidence");
    field("elsewhere", &WatchedRun::elsewhere,
          "commands that started programs where the probe does not follow, and from where no "
          "evidence came; absent for none");
    field(
        "signalled", &WatchedRun::signalled,
        "watched processes of the launcher's host that a signal ended, the first one first, as far "
        "as their parents had not waited for them; absent for none");
    field("without_cuda", &WatchedRun::without_cuda,
          "programs of which the user says that neither they nor what they start uses CUDA; absent "
          "for none",
          JsonText{R"(["docker"])"});
    field("expected_graph_share", &WatchedRun::expected_graph_share,
          "smallest share of kernels in graphs (0 to 1) that the user asked for", 0.9, kCount);
    field("against", &WatchedRun::against,
          "the earlier watched run whose share of graphs this one has to keep; absent if none was "
          "named",
          "/data/runs/20261120-093000-11c2");
    field("earlier", &WatchedRun::earlier,
          "figures of that run; graph_launches only if its command is the same; absent likewise",
          JsonText{R"({"steady_share": 0.9})"}, kCount);
    field("environment", &WatchedRun::environment, "the variables that the launcher set",
          JsonText{R"({"GRAPHPROOF_PROBE_PROFILE": "quick"})"});
    field("versions", &WatchedRun::versions, "versions that the launcher knows",
          JsonText{R"({"graphproof": "0.9.0"})"});
    field("notes", &WatchedRun::notes,
          "what the launcher could not set up or see, one sentence each",
          JsonText{R"(["NCCL's log is not read: the user set NCCL_DEBUG"])"});
  }
};

Json to_json(const WatchedRun& run);
/// Throws ReadError that names `where`.
WatchedRun watched_run_from(const nlohmann::json& value, const std::string& where);

}  // namespace graphproof::record

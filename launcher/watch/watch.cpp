#include "launcher/watch/watch.h"

#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <ctime>
#include <system_error>
#include <thread>

#include "launcher/backend/programs.h"
#include "launcher/host/clocks.h"
#include "launcher/host/processes.h"
#include "launcher/host/run_lock.h"
#include "launcher/run/run_folder.h"
#include "launcher/watch/command_processes.h"
#include "launcher/watch/nccl_question.h"
#include "launcher/watch/probe_look.h"
#include "launcher/watch/watched_command.h"
#include "matrix/input/input_error.h"
#include "reports/print/watched_page.h"
#include "reports/record/text/file.h"

namespace graphproof::launcher {
namespace {

namespace fs = std::filesystem;

// The judge reads some MiB of evidence for each process, and one core reads about 50 MiB a second.
constexpr std::int64_t kJudge_ms = 600'000;

std::string kernel_release() {
  utsname name{};
  uname(&name);
  return name.release;
}

/// Devices of the driver on Linux, and of Windows' subsystem for it.
bool has_gpu() {
  std::error_code ignored;
  return fs::exists("/dev/nvidiactl", ignored) || fs::exists("/dev/dxg", ignored);
}

void make_folder(const fs::path& folder, mode_t mode) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error || chmod(folder.c_str(), mode) != 0)
    throw record::WriteError({.what = "cannot make " + folder.string(),
                              .got = error ? error.message() : std::strerror(errno),
                              .want = "a folder that can be written",
                              .why = "the probes write their evidence there",
                              .next = "choose a place with --run-dir"});
}

/// Root may start a command that becomes another user, which then can write only where everybody
/// can. Nobody but this user may look into the folders of other users' runs.
void make_folders(const fs::path& folder) {
  const bool root = geteuid() == 0;
  if (root && chmod(folder.c_str(), 0711) != 0) return;
  for (const std::string_view name : {record::kProbeFolder, std::string_view("nccl")})
    make_folder(folder / name, root ? 01777 : 0700);
}

void write_run(const fs::path& folder, const record::WatchedRun& run) {
  record::write_json(folder / record::kWatchedRunFile, record::to_json(run));
}

/// The last line that the judge printed; empty if it printed none.
std::string last_line(const fs::path& file) {
  std::string text;
  try {
    text = record::read_text(file);
  } catch (const record::ReadError&) {
    return "";
  }
  while (text.ends_with('\n')) text.pop_back();
  return text.substr(text.rfind('\n') + 1);
}

/// Why the judge left nothing; empty if it ended well.
std::string run_judge(const fs::path& folder, const fs::path& program) {
  const fs::path log = folder / "judge.log";
  std::error_code absent;
  // An older judgement must not be taken for this one.
  for (const fs::path& file : {folder / record::kWatchedChecksFile, log}) fs::remove(file, absent);
  try {
    Child judge({{program, "--watched", folder}, own_environment()}, log);
    const std::int64_t deadline = steady_ms() + kJudge_ms;
    while (!judge.poll() && steady_ms() < deadline)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    const std::optional<Exit> exit = judge.poll();
    if (!exit) return "graphproof-judge did not end in " + std::to_string(kJudge_ms / 1000) + " s";
    if (*exit == Exit{}) return "";
    return std::string("graphproof-judge ended with ") +
           (exit->signalled ? "signal " : "exit code ") + std::to_string(exit->value) + ": " +
           last_line(log);
  } catch (const std::system_error& error) {
    return error.what();
  }
}

record::WatchedRun read_run(const fs::path& folder) {
  const fs::path file = folder / record::kWatchedRunFile;
  return record::watched_run_from(record::read_json(file), file);
}

record::WatchedChecks read_checks(const fs::path& folder) {
  const fs::path file = folder / record::kWatchedChecksFile;
  return record::watched_checks_from(record::read_json(file), file);
}

reports::WatchedReport report_of(const fs::path& folder, const record::WatchedRun& run,
                                 const std::optional<record::WatchedChecks>& checks) {
  reports::WatchedReport report{
      .run = run,
      .checks = checks.value_or(record::WatchedChecks{}),
      .outcome = {},
      .processes = static_cast<int>(look_at_probes(folder / record::kProbeFolder).size()),
      .folder = folder};
  report.outcome = reports::watched_outcome(run, checks, report.processes);
  return report;
}

reports::WatchedReport judge_and_report(const fs::path& folder, const record::WatchedRun& run,
                                        const fs::path& judge_program, const Notice& notice) {
  std::optional<record::WatchedChecks> checks;
  if (run.ending != "not_started") {
    const std::string trouble = run_judge(folder, judge_program);
    if (!trouble.empty() && notice) notice(trouble);
    std::error_code absent;
    if (trouble.empty() || fs::exists(folder / record::kWatchedChecksFile, absent)) {
      try {
        checks = read_checks(folder);
      } catch (const record::ReadError& error) {
        if (notice) notice(error.what());
      }
    }
  }
  const reports::WatchedReport report = report_of(folder, run, checks);
  record::write_atomically(folder / "report.md", reports::watched_markdown(report));
  record::write_atomically(folder / "page.html", reports::watched_page(report));
  return report;
}

bool is_watched_run(const fs::path& folder) {
  std::error_code ignored;
  return fs::is_regular_file(folder / record::kWatchedRunFile, ignored);
}

/// Notes about processes of this host that still write while their evidence is judged.
void note_running_processes(const fs::path& folder, record::WatchedRun& run) {
  for (const ProbeLook& probe : look_at_probes(folder / record::kProbeFolder))
    if (probe.host == own_host() && running_process(static_cast<int>(probe.pid)) &&
        start_ticks(static_cast<int>(probe.pid)) == probe.start_ticks)
      run.notes.push_back("the end of process " + std::to_string(probe.pid) + ": it still runs");
}

}  // namespace

fs::path probe_library(const fs::path& folder) {
  const fs::path library = folder / "libgraphproof-probe.so";
  std::error_code absent;
  if (!fs::is_regular_file(library, absent))
    throw matrix::InputError({.what = "the probe is missing",
                              .got = library.string() + ": " + std::strerror(ENOENT),
                              .want = "libgraphproof-probe.so next to graphproof",
                              .why = "CUDA loads it into the processes that are watched",
                              .next = "./graphproof watch builds it; it needs the headers of CUDA "
                                      "12.4 or newer, with cupti.h"});
  return fs::canonical(library);
}

void check_command(const std::vector<std::string>& command, const Environment& environment) {
  if (command.empty())
    throw matrix::InputError({.what = "watch has no command",
                              .got = "nothing after `--`",
                              .want = "graphproof watch [OPTIONS] -- COMMAND...",
                              .why = "the command is run as it stands there",
                              .next = "graphproof watch -- python3 train.py"});
  const std::string& program = command.front();
  if (!find_program(program, environment).empty()) return;
  std::error_code error;
  const bool has_folder = program.find('/') != std::string::npos;
  std::string got = "`" + program + "` is not in PATH", next = "check its name, or give its path";
  if (has_folder && fs::is_directory(program, error)) {
    got = "`" + program + "` is a folder";
    next = "name a program in it";
  } else if (has_folder && fs::exists(program, error)) {
    got = "`" + program + "` may not be executed";
    next = "chmod +x it, or name its interpreter: graphproof watch -- python3 " + program;
  } else if (has_folder) {
    got = "`" + program + "` does not exist";
  } else if (fs::is_regular_file(program, error)) {
    next = "it is in this folder: graphproof watch -- ./" + program;
  }
  throw matrix::InputError({.what = "the command cannot be started",
                            .got = got,
                            .want = "a program that may be executed",
                            .why = "nothing would run, so there would be nothing to judge",
                            .next = next});
}

namespace {

/// Sets what this run is compared with.
void take_earlier(const fs::path& folder, record::WatchedRun& run) {
  const auto refuse = [&](std::string got, std::string next) {
    return matrix::InputError({.what = "--against cannot be used",
                               .got = folder.string() + ": " + std::move(got),
                               .want = "an earlier watched run with a share of graphs",
                               .why = "there would be nothing to compare with",
                               .next = std::move(next)});
  };
  std::error_code absent;
  if (!fs::exists(folder / record::kWatchedChecksFile, absent))
    throw refuse("it was not judged", "graphproof watch --finish " + folder.string());
  const record::WatchedRun before = read_run(folder);
  run.against = folder;
  std::map<std::string, double>& earlier = run.earlier.emplace();
  for (const auto& [name, value] : read_checks(folder).figures) {
    const bool compared = name.ends_with("steady_share") || name.ends_with("replays_a_step");
    if (compared || (name == "graph_launches" && before.command == run.command))
      earlier[name] = value;
  }
  if (earlier.empty())
    throw refuse("no process of it launched a graph, or an older probe watched it",
                 "watch the earlier program again with this graphproof");
}

}  // namespace

PreparedWatch prepare_watch(const WatchRequest& request) {
  const fs::path probe = probe_library(request.programs);
  const std::time_t now = std::time(nullptr);
  PreparedWatch prepared;
  record::WatchedRun& run = prepared.run;
  run.id = make_run_id(
      now, static_cast<std::uint64_t>(utc_ms()) ^ (static_cast<std::uint64_t>(getpid()) << 20));
  run.command = request.command;
  run.folder = fs::current_path();
  run.host = own_host();
  run.profile = request.profile;
  run.cupti = request.cupti;
  run.started = utc_text(now);
  run.expected_graph_share = request.graph_share;
  if (!request.without_cuda.empty()) run.without_cuda = request.without_cuda;
  if (request.against) take_earlier(*request.against, run);
  run.versions = {{"linux", kernel_release()}};
  prepared.folder = create_run_folder(request.runs, request.run_dir, run.id);
  make_folders(prepared.folder);
  WatchEnvironment environment =
      watch_environment(own_environment(), {.probe = probe,
                                            .probe_folder = prepared.folder / record::kProbeFolder,
                                            .nccl_folder = prepared.folder / "nccl",
                                            .profile = request.profile,
                                            .cupti = request.cupti,
                                            .ras_address = own_ras_address(),
                                            .command = request.command});
  run.environment = environment.variables;
  run.notes = std::move(environment.notes);
  prepared.variables = std::move(environment.variables);
  prepared.output_to_error = request.output_to_error;
  if (request.command.empty()) {
    run.ending = "attached";
    run.notes.push_back(
        "processes without the variables: what was started by hand was not looked at, so a process "
        "that used CUDA without them is not known");
  }
  write_run(prepared.folder, run);
  return prepared;
}

reports::WatchedReport watch(PreparedWatch watch, const fs::path& judge_program,
                             std::int64_t hang_after_ms, const Notice& notice) {
  const RunLock lock(watch.folder);
  Environment environment = own_environment();
  for (const auto& [name, value] : watch.variables) environment[name] = value;
  run_watched_command({.command = {watch.run.command, std::move(environment)},
                       .folder = watch.folder,
                       .probe = watch.variables.at("CUDA_INJECTION64_PATH"),
                       .hang_after_ms = hang_after_ms,
                       .output_to_error = watch.output_to_error,
                       .container_options = container_options(watch.variables, watch.folder),
                       .without_cuda = watch.run.without_cuda.value_or(std::vector<std::string>{}),
                       .notice = notice},
                      watch.run);
  if (look_at_probes(watch.folder / record::kProbeFolder).empty() && !has_gpu())
    watch.run.notes.push_back("GPUs: this host shows no GPU to its processes");
  write_run(watch.folder, watch.run);
  return judge_and_report(watch.folder, watch.run, judge_program, notice);
}

reports::WatchedReport finish_watch(const fs::path& folder, const fs::path& judge_program,
                                    const Notice& notice) {
  const RunLock lock(folder);
  record::WatchedRun run = read_run(folder);
  if (run.ending == "running") {
    run.ending = "interrupted";
    run.notes.push_back("the end of the command: the launcher was killed before it");
    write_run(folder, run);
  }
  note_running_processes(folder, run);
  return judge_and_report(folder, run, judge_program, notice);
}

reports::WatchedReport read_watched(const fs::path& folder) {
  std::error_code absent;
  std::optional<record::WatchedChecks> checks;
  if (fs::exists(folder / record::kWatchedChecksFile, absent)) checks = read_checks(folder);
  return report_of(folder, read_run(folder), checks);
}

std::optional<fs::path> named_watched_run(const fs::path& runs, const std::string& text) {
  for (const fs::path& candidate : {fs::path(text), runs / text})
    if (is_watched_run(candidate)) return fs::canonical(candidate);
  return std::nullopt;
}

std::vector<std::string> watched_run_ids(const fs::path& runs) {
  std::vector<std::string> ids;
  std::error_code absent;
  for (const auto& entry : fs::directory_iterator(runs, absent))
    if (entry.path().filename() != "latest" && is_watched_run(entry.path()))
      ids.push_back(entry.path().filename());
  std::sort(ids.rbegin(), ids.rend());
  return ids;
}

fs::path find_watched_run(const fs::path& runs, const std::string& text) {
  if (const auto named = named_watched_run(runs, text)) return *named;
  const std::vector<std::string> known = watched_run_ids(runs);
  // The link points to the latest run of any kind.
  if (text == "latest" && !known.empty()) return fs::canonical(runs / known.front());
  throw matrix::InputError(
      {.what = "no such watched run",
       .got = "`" + text + "`",
       .want = "the folder of a watched run, an id under " + runs.string() + "/, or `latest`",
       .why = known.empty() ? "there is no watched run under " + fs::absolute(runs).string()
                            : "known: " + matrix::listed(known, 5),
       .next = "graphproof watch -- COMMAND... starts one"});
}

}  // namespace graphproof::launcher

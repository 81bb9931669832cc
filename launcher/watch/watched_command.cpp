#include "launcher/watch/watched_command.h"

#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <map>
#include <set>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "launcher/host/clocks.h"
#include "launcher/host/ending.h"
#include "launcher/host/leftovers.h"
#include "launcher/host/stacks.h"
#include "launcher/watch/command_processes.h"
#include "launcher/watch/command_signals.h"
#include "launcher/watch/hang_watch.h"
#include "launcher/watch/nccl_question.h"
#include "launcher/watch/probe_look.h"
#include "launcher/watch/process_ends.h"
#include "launcher/watch/python_stacks.h"
#include "launcher/watch/started_elsewhere.h"
#include "reports/record/text/file.h"
#include "reports/record/text/printable.h"

namespace graphproof::launcher {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;

// A look reads /proc of every process of the host and the files of the probes. Where that takes
// long, looks are rarer, so that the launcher uses little of the cores that the command computes
// on. A process that uses CUDA without the probe is noticed if it lives until a look; the start of
// CUDA alone takes about as long as from one look to the next.
constexpr std::int64_t kLook_ms = 250, kPausePerLook = 20;
// A shorter time until a hang needs more looks, but never more than these.
constexpr std::int64_t kShortestLook_ms = 50;
constexpr int kLooksUntilHang = 20;
constexpr milliseconds kWait{200}, kEndingStep{25};
// Slurm ends the tasks of a step when srun is told to end; it takes a second or two.
constexpr std::int64_t kEndOfOthers_ms = 10'000;
// Of a command that leaves a process for each of many files, the first few tell enough.
constexpr std::size_t kListedProcesses = 50;
constexpr std::size_t kShownCommand = 200;

double monotonic_seconds() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
}

std::string seconds_text(std::int64_t ms) {
  return record::fixed(static_cast<double>(ms) / 1000, ms < 10'000 ? 1 : 0) + " s";
}

/// One process of this host for good: a number is given out again.
using ProcessKey = std::pair<std::int64_t, std::int64_t>;

/// The looks at the processes of the command while it runs.
class CommandWatch {
 public:
  CommandWatch(const WatchedCommand& command, std::int64_t now_ms)
      : command_(command),
        hang_watch_(command.hang_after_ms, now_ms),
        every_ms_(std::clamp(command.hang_after_ms / kLooksUntilHang, kShortestLook_ms, kLook_ms)) {
  }

  /// Looks if the last look is old enough. True when the command hangs.
  bool step(std::int64_t now_ms) {
    if (now_ms < next_ms_) return false;
    const bool hangs = look(now_ms);
    const std::int64_t end_ms = steady_ms();
    next_ms_ = end_ms + std::max(every_ms_, kPausePerLook * (end_ms - now_ms));
    return hangs;
  }

  std::int64_t still_ms(std::int64_t now_ms) const { return hang_watch_.still_ms(now_ms); }

  /// Descriptors of watched processes that the last looks found; they become readable at the end of
  /// their process.
  std::vector<int> take_descriptors() { return std::exchange(descriptors_, {}); }
  /// The watched processes of this host that a signal has ended, in order. To be called before
  /// orphans are waited for.
  const std::vector<record::SignalledProcess>& signalled() {
    for (const SignalledEnd& end : ends_.look())
      signalled_.push_back({.process = end.name, .signal = end.signal});
    return signalled_;
  }

  /// The driver calls that had not returned at the last look, the longest first.
  std::vector<record::WaitingThread> waiting(std::int64_t now_ms) const {
    std::vector<record::WaitingThread> list;
    for (const ProbeLook& probe : probes_) {
      if (!still_runs(probe)) continue;
      for (const OpenCall& call : probe.open_calls)
        list.push_back(
            {.process = probe.name,
             .pid = probe.pid,
             .thread = call.thread,
             .name = call.name,
             .call = call.call,
             // The clocks of other hosts cannot be compared.
             .seconds = probe.host == host_
                            ? monotonic_seconds() - static_cast<double>(call.since_ns) / 1e9
                            : static_cast<double>(still_ms(now_ms)) / 1000});
    }
    std::ranges::stable_sort(
        list, [](const auto& left, const auto& right) { return left.seconds > right.seconds; });
    return list;
  }

  /// Keeps what /proc and Python know about the threads of the watched processes of this host.
  /// Returns the stacks of their main threads in Python.
  std::map<std::string, std::vector<std::string>> keep_threads() const {
    const fs::path folder = command_.folder / "hang";
    try {
      fs::create_directories(folder);
      std::map<std::string, std::int64_t> processes;
      for (const ProbeLook& probe : probes_)
        if (probe.host == host_ && still_runs(probe)) processes[probe.name] = probe.pid;
      for (const auto& [name, pid] : processes)
        record::write_atomically(folder / (name + ".threads"), threads_of(pid));
      return ask_python(processes, folder);
    } catch (const std::exception& error) {
      if (command_.notice) command_.notice(error.what());
      return {};
    }
  }

  /// What NCCL says of its communicators.
  std::optional<std::vector<std::string>> ask_nccl() const {
    const bool uses_nccl = std::ranges::any_of(running_, [](const ProcessKey& key) {
      return proc_text("/proc/" + std::to_string(key.first) + "/maps").find("libnccl.so") !=
             std::string::npos;
    });
    return launcher::ask_nccl(command_.command.environment,
                              command_.folder / "hang" / "nccl-ras.txt", uses_nccl);
  }

  /// Watched processes of this host that are no descendants and still run: tasks of srun, which
  /// Slurm's daemon starts.
  std::vector<Process> others() const {
    std::vector<Process> found;
    std::set<int> descendants;
    for (const Process& process : Descendants().of(0, "", 0)) descendants.insert(process.pid);
    for (const ProbeLook& probe : look_at_probes(command_.folder / record::kProbeFolder))
      if (const auto process = running_here(probe); process && !descendants.contains(process->pid))
        found.push_back(*process);
    return found;
  }

  /// The other hosts on which a watched process has not said that it ended.
  std::set<std::string> other_hosts() const {
    std::set<std::string> hosts;
    for (const ProbeLook& probe : look_at_probes(command_.folder / record::kProbeFolder))
      if (probe.host != host_ && probe.state == record::probe_file::State::watching)
        hosts.insert(probe.host);
    return hosts;
  }

  /// Takes the command itself, which may have ended before the first look.
  void begin(int pid) {
    descendants_.insert({pid, start_ticks(pid)});
    note_elsewhere({.pid = pid}, {pid, start_ticks(pid)}, command_.command.arguments);
  }

  /// Commands whose programs run where no evidence came from by now.
  std::vector<record::StartedElsewhere> elsewhere() const {
    EvidenceElsewhere evidence;
    std::set<std::string> hosts;
    std::set<std::int64_t> parents = {getpid()};
    for (const auto& [pid, ticks] : descendants_) parents.insert(pid);
    for (const ProbeLook& probe : look_at_probes(command_.folder / record::kProbeFolder)) {
      if (probe.host != host_)
        hosts.insert(probe.host);
      else if (!descendants_.contains({probe.pid, probe.start_ticks}) &&
               !parents.contains(probe.parent))  // it may have ended between two looks
        ++evidence.processes;
    }
    evidence.hosts = hosts.size();
    std::vector<StartsElsewhere> commands;
    for (const auto& [key, one] : elsewhere_) commands.push_back(one.first);
    const std::vector<StartsElsewhere> without = without_evidence(commands, evidence);
    std::vector<record::StartedElsewhere> list;
    for (const auto& [key, one] : elsewhere_)
      if (std::ranges::find(without, one.first) != without.end() && list.size() < kListedProcesses)
        list.push_back(one.second);
    return list;
  }

  /// Processes that used CUDA at some look, or may have, and have left no evidence by now.
  std::vector<record::UnwatchedProcess> unwatched() const {
    std::set<ProcessKey> have;
    for (const ProbeLook& probe : look_at_probes(command_.folder / record::kProbeFolder))
      if (probe.host == host_) have.insert({probe.pid, probe.start_ticks});
    std::vector<record::UnwatchedProcess> list;
    for (const auto& [key, process] : unwatched_)
      if (!have.contains(key) && list.size() < kListedProcesses) list.push_back(process);
    return list;
  }

 private:
  /// One look; true when the command hangs.
  bool look(std::int64_t now_ms) {
    probes_ = look_at_probes(command_.folder / record::kProbeFolder);
    std::map<ProcessKey, const ProbeLook*> watched;
    for (const ProbeLook& probe : probes_)
      // A program that replaces itself leaves two files under one number; the later one counts.
      if (probe.host == host_) watched[{probe.pid, probe.start_ticks}] = &probe;
    std::vector<ProcessActivity> activities;
    running_.clear();
    for (const Process& process : Descendants().of(0, "", 0)) {
      const ProcessKey key{process.pid, start_ticks(process.pid)};
      running_.insert(key);
      descendants_.insert(key);
      note_elsewhere(process, key, words_of(process.pid));
      const auto found = watched.find(key);
      const ProbeLook* probe = found == watched.end() ? nullptr : found->second;
      activities.push_back(activity_of(process, key, probe));
      if (probe)
        follow(*probe);
      else
        look_for_cuda(process, key);
    }
    for (const auto& [key, probe] : watched)
      if (const auto process = running_here(*probe); process && running_.insert(key).second)
        activities.push_back(activity_of(*process, key, probe));
    for (const ProbeLook& probe : probes_)
      if (probe.host != host_ && probe.state == record::probe_file::State::watching)
        activities.push_back({.name = probe.name,
                              .watched = true,
                              .on_this_host = false,
                              .evidence = probe.digest,
                              .inside_call = !probe.open_calls.empty()});
    return hang_watch_.look(now_ms, activities);
  }

  void follow(const ProbeLook& probe) {
    const int descriptor = ends_.follow(static_cast<int>(probe.pid), probe.start_ticks, probe.name);
    if (descriptor >= 0) descriptors_.push_back(descriptor);
  }

  std::optional<Process> running_here(const ProbeLook& probe) const {
    const auto pid = static_cast<int>(probe.pid);
    if (probe.host != host_ || start_ticks(pid) != probe.start_ticks) return std::nullopt;
    return running_process(pid);
  }

  bool still_runs(const ProbeLook& probe) const {
    return probe.host != host_ ? probe.state == record::probe_file::State::watching
                               : running_.contains({probe.pid, probe.start_ticks});
  }

  static ProcessActivity activity_of(const Process& process, const ProcessKey& key,
                                     const ProbeLook* probe) {
    std::set<std::int64_t> inside;
    if (probe)
      for (const OpenCall& call : probe->open_calls) inside.insert(call.thread);
    return {.name = std::to_string(key.first) + "." + std::to_string(key.second),
            .watched = probe != nullptr,
            .on_this_host = true,
            .evidence = probe ? probe->digest : 0,
            .cpu_ms = cpu_ms(process.pid, inside),
            .inside_call = !inside.empty(),
            .stopped = process.state == 'T' || process.state == 't'};
  }

  void look_for_cuda(const Process& process, const ProcessKey& key) {
    const CudaUse use =
        cuda_use(process.pid, command_.probe, command_.folder / record::kProbeFolder);
    const Unwatched missing = why_unwatched(use, command_.probe, command_.container_options);
    if (missing.why.empty()) return;
    if (use.other_user && (uses_no_cuda(process.command) || said_without_cuda(process.command)))
      return;
    unwatched_[key] = {
        .pid = process.pid,
        .command = record::printable(command_line_of(process)),
        .why = missing.why,
        .hidden = use.hidden,
        .next = missing.next + (use.other_user ? without_cuda_of(process.command) : "")};
  }

  bool said_without_cuda(const std::string& program) const {
    return std::ranges::find(command_.without_cuda, program) != command_.without_cuda.end();
  }
  static std::string without_cuda_of(const std::string& program) {
    return "; if it uses no CUDA, add --without-cuda " + record::printable(program);
  }

  /// Says at once, and keeps for the end, that a command starts programs where the probe does not
  /// follow.
  void note_elsewhere(const Process& process, const ProcessKey& key,
                      const std::vector<std::string>& words) {
    if (elsewhere_.contains(key)) return;
    const std::optional<StartsElsewhere> found = starts_elsewhere(words);
    if (!found) return;
    const std::string program = found->by.substr(0, found->by.find(' '));
    // Some of these commands run a second process of their own.
    for (const auto& [other, one] : elsewhere_)
      if (other.first == process.parent) return;
    if (said_without_cuda(program)) return;
    std::string line;
    for (const std::string& word : words) line += (line.empty() ? "" : " ") + word;
    const record::StartedElsewhere& kept =
        elsewhere_
            .try_emplace(key, *found,
                         record::StartedElsewhere{
                             .pid = process.pid,
                             .command = record::printable(line.substr(0, kShownCommand)),
                             .by = found->by,
                             .next = how_to_watch(*found, command_.container_options) +
                                     without_cuda_of(program)})
            .first->second.second;
    if (command_.notice && !found->hands_probe_on && !found->by_a_launcher &&
        told_.insert(found->by).second)
      command_.notice("process " + std::to_string(kept.pid) + " (" + kept.command +
                      ") starts programs where the probe does not follow; to watch them, " +
                      kept.next);
  }

  const WatchedCommand& command_;
  const std::string host_ = own_host();
  HangWatch hang_watch_;
  const std::int64_t every_ms_;
  std::int64_t next_ms_ = 0;
  std::vector<ProbeLook> probes_;
  std::set<ProcessKey> running_;
  std::set<ProcessKey> descendants_;  ///< at any look
  std::map<ProcessKey, record::UnwatchedProcess> unwatched_;
  std::map<ProcessKey, std::pair<StartsElsewhere, record::StartedElsewhere>> elsewhere_;
  std::set<std::string> told_;  ///< kinds of such commands that a notice has named
  ProcessEnds ends_;
  std::vector<int> descriptors_;
  std::vector<record::SignalledProcess> signalled_;
};

/// As the terminal and kill(1) would: the keys reach the whole group, other signals the command.
void pass_on(int signal, const Child& child) {
  const bool from_a_terminal = signal == SIGINT || signal == SIGQUIT || signal == SIGHUP;
  if (from_a_terminal)
    ::kill(-child.pid(), signal);
  else
    child.kill(signal);
}

/// Ends what is left of the command and names what could not be ended.
void end_processes(bool by_itself, const Child& child, record::WatchedRun& run) {
  const Descendants processes;
  Ending ending(processes, child.pid(), "", by_itself, steady_ms());
  while (!ending.step(steady_ms())) {
    reap_orphans({child.pid()});
    std::this_thread::sleep_for(kEndingStep);
  }
  reap_orphans({child.pid()});
  for (const std::string& process : named(ending.left_behind()))
    run.notes.push_back("the end of process " + process +
                        ": the command left it running, and it was ended");
  for (const std::string& process : named(ending.unkillable()))
    run.notes.push_back("process " + process + " could not be ended, even by SIGKILL");
}

/// Ends watched processes that do not descend from here, after what started them had its time to.
void end_others(bool by_itself, const CommandWatch& looks, record::WatchedRun& run) {
  const std::int64_t deadline = steady_ms() + kEndOfOthers_ms;
  std::vector<Process> others = looks.others();
  while (!others.empty() && steady_ms() < deadline) {
    std::this_thread::sleep_for(kWait);
    others = looks.others();
  }
  for (const Process& process : others) {
    ::kill(process.pid, SIGKILL);
    run.notes.push_back("the end of process " + std::to_string(process.pid) + " (" +
                        process.command + "): it is no child of the command, and it was ended");
  }
  if (by_itself) return;
  std::string hosts;
  for (const std::string& host : looks.other_hosts()) hosts += (hosts.empty() ? "" : ", ") + host;
  if (!hosts.empty())
    run.notes.push_back("the end of processes on " + hosts +
                        ": what started them was ended; whether they have ended is not seen");
}

std::string why_hung(const CommandWatch& looks, const std::vector<record::WaitingThread>& waiting,
                     std::int64_t now_ms) {
  std::string why = "for " + seconds_text(looks.still_ms(now_ms)) +
                    " no watched process called the driver, and none of the command's processes "
                    "computed";
  if (waiting.empty()) return why + "; no thread was inside a driver call that is watched";
  const record::WaitingThread& first = waiting.front();
  return why + "; " + first.process + " was inside " + first.call +
         (waiting.size() > 1
              ? ", and " + std::to_string(waiting.size() - 1) + " other threads inside driver calls"
              : "");
}

void set_exit(const std::optional<Exit>& exit, record::WatchedRun& run) {
  if (!exit) return;
  if (exit->signalled)
    run.signal = exit->value;
  else
    run.exit_code = exit->value;
}

/// How the command came to its end. `exit`: of the command, if it ended by itself.
struct End {
  bool interrupted = false, hung = false;
  std::optional<Exit> exit;
};

End wait_for_end(const WatchedCommand& command, Child& child, CommandSignals& signals,
                 CommandWatch& looks) {
  End end;
  std::int64_t interrupted_ms = 0;
  while (true) {
    const std::int64_t now = steady_ms();
    for (const int signal : signals.take()) {
      if (CommandSignals::ends(signal) && end.interrupted) return end;
      pass_on(signal, child);
      if (!CommandSignals::ends(signal)) continue;
      end.interrupted = true;
      interrupted_ms = now;
      if (command.notice)
        command.notice(std::string("passed ") + sigabbrev_np(signal) +
                       " on to the command; once more ends it at once");
    }
    // The command may save its work after a signal, but not for ever.
    if (end.interrupted && now - interrupted_ms > command.hang_after_ms) return end;
    looks.signalled();
    end.exit = child.poll();
    if (end.exit) return end;
    if (looks.step(now)) {
      end.hung = true;
      return end;
    }
    for (const int descriptor : looks.take_descriptors()) signals.wake_by(descriptor);
    reap_orphans({child.pid()});
    signals.wait_for(std::min(kWait, milliseconds(command.hang_after_ms / kLooksUntilHang + 1)));
  }
}

}  // namespace

void run_watched_command(const WatchedCommand& command, record::WatchedRun& run) {
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  CommandSignals signals;
  const std::int64_t begin = steady_ms();
  std::optional<Child> child;
  try {
    child.emplace(command.command, Child::OwnStreams{command.output_to_error});
  } catch (const std::system_error& error) {
    run.ending = "not_started";
    run.why = error.what();
    return;
  }
  CommandWatch looks(command, begin);
  looks.begin(child->pid());
  End end;
  try {
    end = wait_for_end(command, *child, signals, looks);
  } catch (...) {
    end_processes(false, *child, run);
    throw;
  }
  const std::int64_t now = steady_ms();
  if (end.hung) {
    run.waiting = looks.waiting(now);
    run.why = why_hung(looks, run.waiting, now);
    if (command.notice) command.notice("the command hangs and is ended: " + run.why);
    if (auto stacks = looks.keep_threads(); !stacks.empty()) run.stacks = std::move(stacks);
    run.ras = looks.ask_nccl();
  }
  run.seconds = static_cast<double>(now - begin) / 1000;
  // What is ended from here on is ended by the launcher.
  if (const auto& signalled = looks.signalled(); !signalled.empty()) run.signalled = signalled;
  end_processes(end.exit.has_value(), *child, run);
  end_others(end.exit.has_value(), looks, run);
  run.unwatched = looks.unwatched();
  if (auto elsewhere = looks.elsewhere(); !elsewhere.empty()) run.elsewhere = std::move(elsewhere);
  set_exit(end.exit ? end.exit : child->poll(), run);
  if (end.hung)
    run.ending = "hung";
  else if (end.interrupted)
    run.ending = "interrupted";
  else
    run.ending = end.exit->signalled ? "signalled" : "exited";
}

}  // namespace graphproof::launcher

#include "reports/outcome/watched_outcome.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>

namespace graphproof::reports {
namespace {

using record::CheckCounts;
using record::CheckResult;
using record::ExitCode;
using record::Result;
using record::WatchedRun;

struct WatchedVerdictRow {
  std::string_view name;
  ExitCode exit_code;
};
constexpr std::array<WatchedVerdictRow, 8> kWatchedVerdicts = {{
    {"pass", ExitCode::ok},
    {"fail", ExitCode::product},
    {"hang", ExitCode::product},
    {"command_failed", ExitCode::infrastructure},
    {"interrupted", ExitCode::interrupted},
    {"not_started", ExitCode::infrastructure},
    {"unexercised", ExitCode::coverage},
    {"not_judged", ExitCode::own_fault},
}};

/// Shells and launchers report a child that a signal killed with 128 and the signal.
constexpr std::int64_t kSignalled = 128, kSignals = 64;

/// "; node1.4711 was ended by signal 11 (Segmentation fault)" of the process that ended first;
/// empty if a signal ended none, or the command itself.
std::string first_signalled(const WatchedRun& run) {
  if (!run.signalled || run.signalled->empty() || run.ending == "signalled") return "";
  return "; " + signalled_text(run.signalled->front());
}

/// "; rank 3 on host node2 (node2.4711) ended with exit code 1" of the first one; empty for none.
std::string first_failed(const WatchedRun& run, const record::WatchedChecks& checks) {
  if (checks.failed_processes.empty() || (run.signalled && !run.signalled->empty())) return "";
  const record::FailedProcess& first = checks.failed_processes.front();
  const std::string who = first.rank ? "rank " + std::to_string(*first.rank) : "a process";
  const std::size_t others = checks.failed_processes.size() - 1;
  return "; " + who + " on host " + first.host + " (" + first.process + ") ended " +
         (first.exit_status ? "with exit code " + std::to_string(*first.exit_status)
                            : std::string("by a signal or by _exit")) +
         (others == 0 ? "" : ", and " + std::to_string(others) + " more did likewise");
}

CheckCounts counts_of(const std::vector<CheckResult>& checks) {
  CheckCounts counts;
  for (const CheckResult& one : checks) {
    if (one.result == Result::pass) ++counts.pass;
    if (one.result == Result::fail) ++counts.fail;
    if (one.result == Result::unexercised) ++counts.unexercised;
    if (one.result == Result::not_applicable) ++counts.not_applicable;
  }
  return counts;
}

/// "1 check", "2 checks"
std::string counted(int count, const std::string& thing, const std::string& things) {
  return std::to_string(count) + " " + (count == 1 ? thing : things);
}

/// "2 checks failed: D19.capture_status on ranks 0, 1; D29.teardown_order"
std::string failed_text(const std::vector<record::Failing>& failing) {
  std::vector<std::string> names;
  std::map<std::string, std::vector<std::int64_t>> ranks;
  for (const record::Failing& one : failing) {
    if (std::ranges::find(names, one.check) == names.end()) names.push_back(one.check);
    if (one.rank) ranks[one.check].push_back(*one.rank);
  }
  std::string text = counted(static_cast<int>(names.size()), "check failed", "checks failed");
  for (std::size_t at = 0; at < names.size(); ++at) {
    text += (at == 0 ? ": " : "; ") + names[at];
    const auto& where = ranks[names[at]];
    for (std::size_t i = 0; i < where.size(); ++i)
      text += (i > 0              ? ", "
               : where.size() > 1 ? " on ranks "
                                  : " on rank ") +
              std::to_string(where[i]);
  }
  return text;
}

/// A process that left no evidence, in the order of what is known of it: one of which something
/// hides the probe, one that has loaded the driver, one that may have.
std::optional<record::Message> unwatched_gap(const WatchedRun& run) {
  if (run.unwatched.empty()) return std::nullopt;
  const auto hidden = std::ranges::find_if(
      run.unwatched, [](const record::UnwatchedProcess& one) { return one.hidden.has_value(); });
  const record::UnwatchedProcess& one =
      hidden == run.unwatched.end() ? run.unwatched.front() : *hidden;
  const std::string who = "process " + std::to_string(one.pid) + " (" + one.command + ")";
  if (one.hidden)
    return record::Message{
        .what = who + " ran without the probe or its folder",
        .got = *one.hidden + " does not exist where it runs, such as in a container",
        .want = "the probe and the folder of the run under the same paths there",
        .why =
            "CUDA says nothing of a library that it does not find, so nothing of this process "
            "was seen",
        .next = one.next.value_or(
            "give the container the folder of the probe and that of the run (docker -v DIR:DIR, "
            "apptainer --bind DIR), or start graphproof watch inside it")};
  const std::size_t others = run.unwatched.size() - 1;
  return record::Message{
      .what = who + " was not watched",
      .got = one.why +
             (others == 0
                  ? ""
                  : "; " + counted(static_cast<int>(others), "more process", "more processes") +
                        " likewise"),
      .want = "the probe in each process of the command that uses CUDA",
      .why = "nothing of this process was seen, so the command as a whole cannot pass",
      .next = one.next.value_or("let it begin with the variables that graphproof watch sets")};
}

/// A command whose programs run where nothing was seen.
std::optional<record::Message> elsewhere_gap(const WatchedRun& run) {
  if (!run.elsewhere || run.elsewhere->empty()) return std::nullopt;
  const record::StartedElsewhere& one = run.elsewhere->front();
  return record::Message{
      .what = "process " + std::to_string(one.pid) + " (" + one.command +
              ") started programs where the probe did not follow",
      .got = "no evidence from where " + one.by + " starts them",
      .want = "evidence of each program that uses CUDA",
      .why =
          "they do not descend from the command or do not have its environment, so whether they "
          "used CUDA was not seen",
      .next = one.next};
}

/// Of how many processes the driver calls were not seen.
int without_driver_calls(const record::WatchedChecks& checks) {
  const auto unseen = checks.figures.find("processes_without_driver_calls");
  return unseen == checks.figures.end() ? 0 : static_cast<int>(unseen->second);
}

/// What of the job could not be seen at all.
std::optional<record::Message> gap_of(const WatchedRun& run, const record::WatchedChecks& checks) {
  if (auto gap = unwatched_gap(run)) return gap;
  if (auto gap = elsewhere_gap(run)) return gap;
  if (const int unseen = without_driver_calls(checks); unseen > 0)
    return record::Message{
        .what = "the driver calls of " + counted(unseen, "process", "processes") + " were not seen",
        .got = run.cupti ? "CUPTI was not there for the probe, as the notes say"
                         : "--no-cupti leaves CUPTI to the program",
        .want = "the driver calls of each process that uses CUDA",
        .why = "which graphs such a process made and launched is not known",
        .next =
            "run it once without the other tool or profiler, with CUPTI of its CUDA installed, "
            "and without --no-cupti"};
  const auto missing = checks.figures.find("ranks_without_evidence");
  if (missing == checks.figures.end()) return std::nullopt;
  return record::Message{
      .what = "a part of the job left no evidence",
      .got = counted(static_cast<int>(missing->second), "rank", "ranks") + " without evidence",
      .want = "evidence of every rank that the others count",
      .why = "what these ranks did was not seen",
      .next =
          "put the folder of the run where all hosts and containers see it (--run-dir), and let "
          "the launcher of the ranks hand on the environment"};
}

/// Why there is no evidence of any process.
std::string nothing_watched(const WatchedRun& run) {
  if (run.unwatched.empty())
    return std::string("no process of the command made a CUDA context") +
           (run.elsewhere && !run.elsewhere->empty()
                ? ", and what " + run.elsewhere->front().by + " started was not seen"
                : "");
  return "no process left evidence; " +
         counted(static_cast<int>(run.unwatched.size()), "process was", "processes were") +
         " not watched, the first is " + run.unwatched.front().command + ": " +
         run.unwatched.front().why;
}

/// Why a run in which nothing failed is no pass; empty if it is one.
std::string nothing_judged(const WatchedRun& run, const record::WatchedChecks& checks,
                           const CheckCounts& counts, int processes) {
  if (processes == 0) return nothing_watched(run);
  if (const int unseen = without_driver_calls(checks); checks.graphs.empty() && unseen > 0)
    return counted(processes, "process", "processes") +
           " used CUDA, and no CUDA graph is known; the driver calls of " + std::to_string(unseen) +
           " of them were not seen";
  if (checks.graphs.empty())
    return counted(processes, "process", "processes") + " used CUDA, and none made a CUDA graph";
  if (counts.pass == 0) return "no check had the evidence that it needs";
  return "";
}

}  // namespace

std::string_view name(WatchedVerdict verdict) {
  return kWatchedVerdicts[static_cast<std::size_t>(verdict)].name;
}

ExitCode exit_code(WatchedVerdict verdict) {
  return kWatchedVerdicts[static_cast<std::size_t>(verdict)].exit_code;
}

std::string signal_text(std::int64_t signal) {
  const char* text = strsignal(static_cast<int>(signal));
  return "signal " + std::to_string(signal) + (text ? " (" + std::string(text) + ")" : "");
}

std::string signalled_text(const record::SignalledProcess& process) {
  return process.process + " was ended by " + signal_text(process.signal);
}

std::string ending_text(const WatchedRun& run) {
  if (run.ending == "exited") {
    const std::int64_t code = run.exit_code.value_or(-1);
    std::string text = "exit code " + std::to_string(code);
    if (code > kSignalled && code <= kSignalled + kSignals)
      text += ", which a shell gives for " + signal_text(code - kSignalled);
    return text;
  }
  if (run.ending == "signalled") return signal_text(run.signal.value_or(0));
  if (run.ending == "hung") return "it hung and was ended";
  if (run.ending == "interrupted") return "it was interrupted";
  if (run.ending == "not_started") return "it was not started";
  if (run.ending == "attached") return "not known: graphproof did not start it";
  return "not known: it was still running";
}

WatchedOutcome watched_outcome(const WatchedRun& run,
                               const std::optional<record::WatchedChecks>& checks, int processes) {
  WatchedOutcome outcome;
  if (checks) {
    outcome.counts = counts_of(checks->checks);
    for (const CheckResult& one : checks->checks)
      if (one.result == Result::fail)
        outcome.failing.push_back({.check = one.check, .rank = one.rank, .message = one.message});
  }
  const auto decide = [&](WatchedVerdict verdict, std::string reason) {
    outcome.verdict = verdict;
    outcome.reason = std::move(reason);
    return outcome;
  };
  const std::string failed = failed_text(outcome.failing);
  outcome.gap = gap_of(run, checks.value_or(record::WatchedChecks{}));
  if (run.ending == "not_started") return decide(WatchedVerdict::not_started, run.why);
  // A hang comes first: the checks that it makes fail are its symptoms.
  if (run.ending == "hung")
    return decide(WatchedVerdict::hang,
                  run.why + (run.ras && !run.ras->empty() ? "; NCCL: " + run.ras->front() : "") +
                      (outcome.failing.empty() ? "" : "; " + failed));
  if (!checks) return decide(WatchedVerdict::not_judged, "the judge left no checks.json");
  if (!outcome.failing.empty()) return decide(WatchedVerdict::fail, failed);
  if (run.ending == "interrupted" || run.ending == "running")
    return decide(WatchedVerdict::interrupted,
                  "the command did not come to its end; no check failed up to there");
  // How the command ended is not known then, and such a process may have hung.
  if (const auto stopped = checks->figures.find("stopped_inside_calls");
      run.ending == "attached" && stopped != checks->figures.end())
    return decide(WatchedVerdict::interrupted,
                  counted(static_cast<int>(stopped->second), "process was", "processes were") +
                      " stopped inside a driver call; no check failed up to there");
  const std::string nothing = nothing_judged(run, *checks, outcome.counts, processes);
  if (run.command_failed())
    return decide(WatchedVerdict::command_failed,
                  "the command ended with " + ending_text(run) + ", and " +
                      (nothing.empty() ? "no check failed" : nothing) + first_signalled(run) +
                      first_failed(run, *checks));
  if (!nothing.empty()) return decide(WatchedVerdict::unexercised, nothing);
  if (outcome.gap)
    return decide(WatchedVerdict::unexercised, outcome.gap->what + ": " + outcome.gap->got);
  return decide(WatchedVerdict::pass,
                counted(outcome.counts.pass, "check passed", "checks passed") + ", none failed; " +
                    counted(outcome.counts.unexercised, "check was", "checks were") +
                    " unexercised");
}

}  // namespace graphproof::reports

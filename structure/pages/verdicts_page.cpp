#include <array>
#include <stdexcept>
#include <utility>

#include "matrix/catalogue/catalogue.h"
#include "reports/outcome/outcome.h"
#include "reports/record/verdict/exit_code.h"
#include "reports/record/verdict/phase.h"
#include "reports/record/verdict/verdict.h"
#include "structure/pages/markdown.h"
#include "structure/pages/pages.h"

namespace graphproof::structure {
namespace {

using record::ExitCode;
using record::Verdict;

/// What a verdict, or a family of verdicts, means. A family stands for all that begin with it.
struct Meaning {
  std::string_view verdict, text;
};
constexpr std::array kMeanings = {
    Meaning{"fail.hang", "a rank gave no sign of life for longer than the limit of the phase"},
    Meaning{"fail.crash.signal", "a rank died by a signal"},
    Meaning{"fail.silent", "the ranks ended without a complete result of every rank"},
    Meaning{"fail.constraint", "a rank accepted what a rule forbids, or refused what is allowed"},
    Meaning{"fail.sanitizer",
            "compute-sanitizer reported an error of a kernel; what it wrote may be anywhere"},
    Meaning{"fail.eager",
            "the eager arm itself fails: not a graph defect; graph arms are not judged"},
    Meaning{"fail.capture", "a capture failed, or left work that nothing waits for"},
    Meaning{"fail.crash.cuda", "a rank met an error of CUDA"},
    Meaning{"fail.crash.nccl", "a rank met an error of NCCL"},
    Meaning{"fail.crash.mpi", "a rank met an error of MPI"},
    Meaning{"fail.crash.exception", "a rank met another exception"},
    Meaning{"fail.not_replayed", "a step that had to be replayed was not, or not whole"},
    Meaning{"fail.numerics", "a graph computed something else than eager"},
    Meaning{"fail.memory.oom", "a rank ran out of device memory"},
    Meaning{"fail.memory.growth",
            "memory grows with the steps, or is above a limit that the matrix states"},
    Meaning{"fail.memory.leak", "memory stays when everything of a case is gone"},
    Meaning{"fail.cleanup.process", "a process was left behind"},
    Meaning{"fail.cleanup.gpu_memory", "GPU memory stayed in use"},
    Meaning{"fail.cleanup.shm", "shared memory or a semaphore was left behind"},
    Meaning{"fail.cleanup.port", "a listening socket was left behind"},
    Meaning{"fail.cleanup.file", "a temporary file was left behind"},
    Meaning{"fail.perf", "slower than a limit that the matrix states; otherwise time is a figure"},
    Meaning{"fail.survived", "a planted fault was not caught by its detector"},
    Meaning{"fail.isolation", "fails in a batch and passes alone: state leaked between cases"},
    Meaning{"flaky", "only some of the confirmations failed"},
    Meaning{"xpass", "a known issue or hazard no longer shows"},
    Meaning{"infra.node", "a node or its agent was lost"},
    Meaning{"infra.gpu", "a GPU had trouble, or too few are left"},
    Meaning{"infra.launch", "the ranks could not be started"},
    Meaning{"infra.scheduler", "the cluster's scheduler failed or took the allocation away"},
    Meaning{"infra.container", "the container image could not be used"},
    Meaning{"infra.disk", "the run folder could not be written"},
    Meaning{"infra.network", "the network between nodes failed"},
    Meaning{"infra.preempted", "a rank was ended by SIGTERM, as the end of an allocation does"},
    Meaning{"unexercised", "a check that the case requires found nothing to look at"},
    Meaning{"not_run", "interrupted, or stopped by a budget, --max-fail or the circuit breaker"},
    Meaning{"skipped.gpus", "this machine has too few GPUs"},
    Meaning{"skipped.arch", "this machine has another GPU architecture"},
    Meaning{"skipped.capability", "the workloads, the engines or this stack lack something"},
    Meaning{"xfail", "a known issue or hazard behaved as it is written down"},
    Meaning{"pass.killed", "a planted fault was caught by its detector, or is harmless here"},
    Meaning{"pass.rejected", "a forbidden combination was refused by the expected rule"},
    Meaning{"pass", "every required check passed"},
};

std::string meaning_of(Verdict verdict) {
  for (const Meaning& one : kMeanings)
    if (one.verdict == verdict.text() || (one.verdict == "fail.hang" && verdict.in(one.verdict)))
      return std::string(one.text);
  throw std::logic_error("structure/pages/verdicts_page.cpp has no meaning of verdict " +
                         std::string(verdict.text()));
}

std::string exit_codes() {
  std::string text = "\n## Exit codes\n\n" + table_head({"code", "meaning"});
  for (int code = 0; code < static_cast<int>(record::kExitPrecedence.size()); ++code)
    text += table_row(
        {std::to_string(code), std::string(record::meaning(static_cast<ExitCode>(code)))});
  text += "\nWhere several apply to a run, the strongest counts. Strongest first:";
  for (const ExitCode code : record::kExitPrecedence)
    text += " " + std::to_string(record::value(code));
  return text + ".\n";
}

std::string verdicts() {
  std::string text =
      "\n## Verdicts\n\nA case ends with exactly one. The worst stands first: of several failing "
      "checks the one whose verdict stands first decides. A record also keeps `observed`, the "
      "verdict without the plan's expectation.\n\n" +
      table_head({"verdict", "exit code", "meaning"});
  bool hang = false;  // one row for all phases
  for (const record::VerdictRow& row : record::kVerdicts) {
    const Verdict verdict = *Verdict::from(row.text);
    if (verdict.in("fail.hang") && std::exchange(hang, true)) continue;
    text += table_row({code(verdict.in("fail.hang") ? "fail.hang.PHASE" : row.text),
                       std::to_string(record::value(row.exit_code)), meaning_of(verdict)});
  }
  return text;
}

std::string outcome_rules() {
  std::string text =
      "\n## Outcome rules\n\nThe first rule that applies decides; rules from 80 on apply what the "
      "plan expected. The number is written into the record, and a rule keeps its number for "
      "ever. The code is `reports/outcome/outcome.cpp`.\n\n" +
      table_head({"rule", "applies when"});
  for (const reports::Rule& rule : reports::rules())
    text += table_row({std::to_string(rule.number), std::string(rule.name)});
  return text;
}

std::string phases() {
  std::string text =
      "\n## Phases\n\nWhat a rank is doing, in this order. A rank that is silent for longer than "
      "the limit of its phase hangs. A profile, a matrix file or a planted fault may set other "
      "limits. The time in which the rank that the others wait for could run and had no processor "
      "does not count, for nine tenths of its silence at most.\n\n" +
      table_head({"phase", "limit of silence", "holds for"});
  const matrix::Limits limits = matrix::load_catalogue().limits;
  for (std::size_t i = 0; i < record::kPhaseCount; ++i) {
    const auto phase = static_cast<record::Phase>(i);
    text += table_row({code(record::name(phase)), std::to_string(limits.at(phase) / 1000) + " s",
                       record::limited_per_step(phase) ? "each step" : "the phase"});
  }
  return text;
}

}  // namespace

std::string verdicts_page() {
  return page_head("Verdicts, exit codes, outcome rules and phases",
                   "How a case and a run end. A skip is not a pass: it is counted in the coverage "
                   "line.",
                   "`reports/record/verdict`, `reports/outcome/outcome.cpp` and "
                   "`matrix/tables/limits.json`") +
         exit_codes() + verdicts() + outcome_rules() + phases();
}

}  // namespace graphproof::structure

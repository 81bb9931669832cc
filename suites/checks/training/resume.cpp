// D47: a job that resumes from a checkpoint ends with the same results as the job that saved it: in
// one process in a new model and in one whose graphs exist already, or in a new process.
#include <array>
#include <span>

#include "suites/checks/attempt/comparison.h"
#include "suites/checks/attempt/concat.h"
#include "suites/checks/attempt/launches.h"

namespace graphproof::checks::d47 {
namespace {

using record::ResumedLine;

constexpr std::array kPairs{ArmPair{"resumed", "lockstep_graph", "resumed"},
                            ArmPair{"loaded", "lockstep_graph", "loaded"}};

/// What the resumed runs do: their first step, and their graph launches together. There are two in
/// one process, of which only that in a new model warms up and captures, and one in a new process.
struct Resumed {
  std::int64_t first_step, replays;
};
Resumed resumed(const Expected& expected, bool in_new_process) {
  const std::int64_t runs = in_new_process ? 1 : 2;
  // A first replay has the inputs of its capture, so the only run of a new process has two.
  const std::int64_t first = expected.steps - expected.first_replay - (in_new_process ? 2 : 1);
  return {first,
          expected.launches_per_step * (runs * (expected.steps - first) - expected.first_replay)};
}

/// Whether the job ran in another process than the rank that saved the checkpoint.
void judge_process(Judgement& judgement, const RankFiles& files) {
  const ResumedLine* line = judgement.first<ResumedLine>(files);
  const auto start = files.lines<record::StartLine>();
  if (!line || start.empty()) return;  // judged by judge_replays and D21.evidence_complete
  if (line->process && *line->process != start.front().pid) return judgement.confirm(files.rank);
  judgement.defect(
      {.rank = files.rank,
       .step = line->step,
       .what = "the resumed job did not run in a new process",
       .got = line->process ? concat("process ", *line->process) : "no process of its own",
       .want = concat("another process than ", start.front().pid, ", which saved the checkpoint"),
       .why = "what lives on in a process is no part of a checkpoint, and hides what it lacks"});
}

void judge_replays(Judgement& judgement, const RankFiles& files, const Resumed& want) {
  const ResumedLine* line = judgement.first<ResumedLine>(files);
  if (!line) return judgement.absent<ResumedLine>(files, "", want.first_step);
  if (line->step == want.first_step && line->replays == want.replays)
    return judgement.confirm(files.rank);
  judgement.defect(
      {.rank = files.rank,
       .step = line->step,
       .what = "the resumed job did not replay every step after its warm-up",
       .got = concat(line->replays, " replays from step ", line->step, " on"),
       .want = concat(want.replays, " from step ", want.first_step, " on"),
       .why = "steps that ran eagerly agree in their numbers and prove nothing about the graph"});
}

}  // namespace

/// A job that resumes from a checkpoint ends with the same results as the job that saved it: in a
/// new process, or in the same one in a new model and then again in that model with its graphs. It
/// replays every step after the warm-up.
record::CheckResult resume(Judgement& judgement, const Attempt& attempt) {
  if (!judgement.has_replays()) return judgement.result("", "");
  const bool in_new_process = attempt.axes.text("resume_in") == "new_process";
  const std::span<const ArmPair> pairs = std::span(kPairs).first(in_new_process ? 1 : 2);
  const Resumed want = resumed(judgement.expected(), in_new_process);
  for (const RankFiles& files : attempt.ranks) {
    for (const ArmPair& pair : pairs)
      judge_final_comparison(judgement, files, pair, judgement.expected().steps - 1);
    judge_replays(judgement, files, resumed(expected_launches(judgement, files), in_new_process));
    if (in_new_process) judge_process(judgement, files);
  }
  return judgement.result(
      concat("steps from ", want.first_step, " on equal on ", attempt.ranks.size(), " ranks, with ",
             want.replays, " replays", in_new_process ? ", in a new process" : ""),
      in_new_process
          ? "the results of the job that saved the checkpoint, in a new process"
          : "the results of the job that saved the checkpoint, in a new model and with its graphs");
}

}  // namespace graphproof::checks::d47

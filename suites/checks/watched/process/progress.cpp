// D22 in a watched run: the command ended by itself. That it hung is what the launcher found.
#include <algorithm>

#include "suites/checks/attempt/concat.h"
#include "suites/checks/watched/job/watched_judgement.h"

namespace graphproof::checks::watched::d22 {
namespace {

std::string waiting(const WatchedJob& job) {
  std::string text;
  for (const record::WaitingThread& thread : job.run.waiting)
    text += concat(text.empty() ? "" : "; ", thread.process, ", thread ", thread.thread, " (",
                   thread.name, "), in ", thread.call, " for ", thread.seconds, " s");
  return text;
}

/// "rank 1 (node.4712) is at train.py:34 <module>" for each Python program.
std::string places(const WatchedJob& job) {
  std::string text;
  for (const auto& [name, stack] :
       job.run.stacks.value_or(decltype(job.run.stacks)::value_type())) {
    const auto of = std::ranges::find(job.processes, name, &JobProcess::name);
    const std::string line = program_line(stack);
    text += concat(text.empty() ? "" : "; ", of == job.processes.end() ? name : of->title(),
                   " is at ", line, line == stack.front() ? "" : concat(" in ", stack.front()));
  }
  return text;
}

}  // namespace

record::CheckResult progress(WatchedJudgement& judgement, const WatchedJob& job) {
  const record::WatchedRun& run = job.run;
  for (const JobProcess& process : job.processes) {
    if (process.has_graphs()) judgement.confirm(process);
    if (const std::string call = process.stopped_inside(); !call.empty())
      judgement.unexercised(
          concat(process.title(), " ended inside ", call, " and without its exit handlers"));
  }
  if (run.ending == "hung") {
    std::string calls = waiting(job);
    if (const std::string where = places(job); !where.empty())
      calls += concat(calls.empty() ? "" : "; ", where);
    if (run.ras)
      for (const std::string& line : *run.ras) calls += concat(calls.empty() ? "" : "; ", line);
    Finding finding{
        .what = concat("the command stopped making progress: ", run.why),
        .got = calls.empty() ? concat("nothing moved; ended after ", run.seconds, " s") : calls,
        .want = "a command that ends by itself",
        .why = "a rank waits for another one, or the device for work that never comes",
        .next =
            "D26.participation and D29.teardown_order name two causes; the states "
            "of the threads are in the folder hang"};
    const auto of = std::ranges::find_if(job.processes, [&](const JobProcess& process) {
      return !run.waiting.empty() && process.name == run.waiting.front().process;
    });
    if (of == job.processes.end())
      judgement.defect(std::move(finding));
    else
      judgement.defect(*of, std::move(finding));
  } else if (run.ending != "exited") {
    judgement.unexercised(concat("how the command would have gone on is not known: ", run.ending));
  }
  return judgement.result(concat("the command ended after ", run.seconds, " s"),
                          "a command that ends by itself");
}

}  // namespace graphproof::checks::watched::d22

// D69: numbers that a captured optimizer step takes from the host, such as the learning rate. The
// kernels of a graph keep those of the capture, whatever the host writes into the optimizer's
// groups afterwards. The Python half of the probe compares them before the replays.
#include "suites/checks/attempt/concat.h"
#include "suites/checks/watched/job/watched_judgement.h"

namespace graphproof::checks::watched::d69 {
namespace {

/// "graph 1, captured at train.py:41 main", or the capture where CUPTI numbered no graph.
std::string title_of(const JobProcess& process, const std::vector<Executable>& all,
                     std::int64_t capture) {
  if (const Executable* one = launched_with(process, all, capture)) return one->title();
  for (const auto& line : process.of<record::WatchedCaptureLine>())
    if (line.capture == capture) return concat("capture ", capture, captured_at(line));
  return concat("capture ", capture);
}

}  // namespace

record::CheckResult frozen_numbers(WatchedJudgement& judgement, const WatchedJob& job) {
  std::int64_t watched = 0;
  for (const JobProcess& process : job.processes) {
    if (!process.has_graphs()) continue;
    const std::vector<Executable> all = executables(process);
    // The line is written by the replay that has the old number.
    for (const auto& line : process.of<record::FrozenNumberLine>())
      judgement.defect(
          process,
          {.what = concat(title_of(process, all, line.capture), ", keeps the `", line.name,
                          "` that its optimizer had at the capture"),
           .got = concat(line.captured, " in the kernels of ", line.optimizer, ", group ",
                         line.group, ", at replay ", line.replays + 1),
           .want = concat(line.now, ", as the host has set it since"),
           .why = "each replay makes the step with the number of the capture, so a schedule of the "
                  "host changes nothing",
           .next = "make it a tensor on the device and write into it (lr=torch.tensor(...) with "
                   "capturable=True, group[\"lr\"].fill_(...)), or capture again when it changes"});
    bool any = false;
    for (const Executable& one : all) {
      if (one.launches() == 0 || !one.capture || one.capture->optimizer_steps.value_or(0) == 0)
        continue;
      any = true;
      if (!one.capture->optimizer_numbers)
        judgement.unexercised(concat(process.title(), ": the numbers of the optimizer in ",
                                     one.title(),
                                     ", were not looked at by the probe that recorded this"));
      watched += one.capture->optimizer_numbers.value_or(0);
    }
    if (any)
      judgement.confirm(process);
    else
      judgement.excuse(process, "no graph that was launched has an optimizer's step");
  }
  return judgement.result(concat(watched,
                                 " numbers of captured optimizer steps, none of them "
                                 "changed by the host"),
                          "the numbers of the capture at each replay");
}

}  // namespace graphproof::checks::watched::d69

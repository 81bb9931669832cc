// D63: whether a library has a way to use graphs and did not take it. Libraries say so by log
// records, warnings and counters, which most programs never show.
#include "suites/checks/attempt/concat.h"
#include "suites/checks/watched/job/watched_judgement.h"

namespace graphproof::checks::watched::d63 {

record::CheckResult skipped_capture(WatchedJudgement& judgement, const WatchedJob& job) {
  const auto skipped = [&](const JobProcess& process, std::string what, std::string got) {
    judgement.defect(process,
                     {.what = std::move(what),
                      .got = std::move(got),
                      .want = "graphs wherever the program asked for them",
                      .why = "the program goes on without a graph there, at the speed of eager",
                      .next = "remove the cause that is named; TORCH_LOGS=cudagraphs shows all of "
                              "them, TORCHINDUCTOR_CUDAGRAPH_OR_ERROR=1 makes each an error"});
  };
  for (const JobProcess& process : job.processes) {
    for (const auto& message : process.of<record::GraphMessageLine>())
      if (message.about == "skipped")
        skipped(process, "a library left out a graph that it was asked for",
                concat(message.source, ": ", message.text.substr(0, message.text.find('\n'))));
    std::int64_t skips = 0;
    for (const auto& line : process.of<record::GraphCountersLine>())
      if (const auto found = line.counters.find("inductor.cudagraph_skips");
          found != line.counters.end())
        skips = std::max(skips, found->second);
    if (skips > 0)
      skipped(process, "torch.compile left out graphs that it was asked for",
              concat(skips, " skips in torch._dynamo.utils.counters[\"inductor\"]"));
    if (process.has_graphs()) judgement.confirm(process);
  }
  return judgement.result("no message or counter of a skipped graph",
                          "graphs wherever the program asked for them");
}

}  // namespace graphproof::checks::watched::d63

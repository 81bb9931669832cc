// D68: PyTorch binds the accumulator of a gradient to the stream on which it was made, and warns if
// the gradient arrives on another one. The warning alone is no defect: make_graphed_callables and
// Megatron-Core cause it and capture well. It explains a capture that failed.
#include <algorithm>

#include "suites/checks/attempt/concat.h"
#include "suites/checks/watched/job/watched_judgement.h"

namespace graphproof::checks::watched::d68 {

record::CheckResult stream_of_accumulators(WatchedJudgement& judgement, const WatchedJob& job) {
  for (const JobProcess& process : job.processes) {
    if (!process.has_graphs()) continue;  // without a capture it costs time at most
    const auto captures = process.of<record::WatchedCaptureLine>();
    const bool failed = std::ranges::any_of(captures, [](const record::WatchedCaptureLine& line) {
      return line.result != 0 || !line.error.empty();
    });
    for (const auto& message : process.of<record::GraphMessageLine>())
      if (failed && message.about == "accumulator")
        judgement.defect(
            process,
            {.what =
                 "a capture failed, and gradient accumulators belong to another stream than the "
                 "backward pass",
             .got =
                 concat(message.source, ": ", message.text.substr(0, message.text.find(". ") + 1)),
             .want = "accumulators that are made on the stream that captures",
             .why =
                 "the captured backward pass synchronises with that stream; if it is the default "
                 "stream, the capture fails (906) or leaves the accumulation out of the graph",
             .next =
                 "make the model, DistributedDataParallel and the warm-up steps under "
                 "`with torch.cuda.stream(side)`, and drop what keeps an earlier autograd graph "
                 "alive, such as a loss"});
    judgement.confirm(process);
  }
  return judgement.result("no failed capture next to a warning about the stream of an accumulator",
                          "no capture that fails because of the stream of an accumulator");
}

}  // namespace graphproof::checks::watched::d68

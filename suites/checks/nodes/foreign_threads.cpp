// D61: other threads that worked during a capture.
#include <algorithm>

#include "suites/checks/nodes/host_work.h"

namespace graphproof::checks::d61 {

/// During a capture no thread calls operators but the capturing one and autograd's device threads,
/// which run the backward of the step that is captured.
record::CheckResult foreign_threads(Judgement& judgement, const Attempt& attempt) {
  std::int64_t captures = 0;
  for_each_captured_graph(
      judgement, attempt, [&](const RankFiles& files, const record::HostWorkLine& line) {
        ++captures;
        const auto other = std::ranges::find_if(line.other_threads, [](const auto& thread) {
          return !thread.first.starts_with("pt_autograd");
        });
        if (other == line.other_threads.end()) return judgement.confirm(files.rank);
        judgement.defect(
            {.rank = files.rank,
             .step = std::nullopt,
             .what = concat("another thread worked during the capture of ", title_of(line)),
             .got = concat(other->second, " operators of thread ", other->first),
             .want = "work of the thread that captures, and of autograd's threads",
             .why = "what such a thread adds to the capture depends on which thread was "
                    "faster, and calls that a capture forbids make it invalid"});
      });
  return judgement.result(concat(captures, " captures without work of other threads"),
                          "no work of other threads during a capture");
}

}  // namespace graphproof::checks::d61

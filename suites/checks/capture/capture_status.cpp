// D19: the capture ended without an error, and all its streams were joined. The message names the
// first operation that was refused.
#include "suites/checks/attempt/arms.h"
#include "suites/checks/attempt/capture.h"
#include "suites/checks/attempt/concat.h"
#include "suites/checks/attempt/judgement.h"

namespace graphproof::checks::d19 {

using record::CaptureLine;

/// Every graph arm captured successfully, and no error happened in phase capture.
record::CheckResult capture_status(Judgement& judgement, const Attempt& attempt) {
  if (!judgement.has_replays()) return judgement.result("", "");
  const auto refused = [&](const RankFiles& files, std::optional<std::int64_t> step,
                           const std::string& where, std::int64_t code, const std::string& site,
                           const std::string& message) {
    judgement.defect(
        {.rank = files.rank,
         .step = step,
         .what = concat("the capture of ", where, " failed"),
         .got = concat("code ", code, " at ", site.empty() ? "an unnamed operation" : site, ": ",
                       message),
         .want = "status ok, code 0",
         .why = "an operation that is not allowed during a capture invalidates the whole graph"});
  };
  // CUDA accepts some captures whose forked stream is not joined
  // (docs/findings/unjoined-nccl-stream.md), so the rank inspects the graph itself.
  const auto joined = [&](const RankFiles& files, const CaptureLine& capture) {
    if (!capture.unjoined || capture.unjoined->empty()) return;
    judgement.defect(
        {.rank = files.rank,
         .step = std::nullopt,
         .what = concat("the capture of ", capture_name(capture),
                        " left work that its stream does not wait for"),
         .got = concat(capture.unjoined->size(), " unjoined, the first is \"",
                       capture.unjoined->front(), "\""),
         .want = "every forked stream joined before the capture ends",
         .why = "work after the graph may begin before this work is done, so a right result is "
                "chance"});
  };
  for (const RankFiles& files : attempt.ranks) {
    for (const CaptureLine& capture : judgement.lines<CaptureLine>(files)) {
      if (succeeded(capture)) {
        judgement.confirm(files.rank);
        joined(files, capture);
      } else {
        refused(files, std::nullopt, capture_name(capture), capture.code, capture.site,
                capture.message);
      }
    }
    for (const record::ErrorLine& error : judgement.lines<record::ErrorLine>(files))
      if (error.phase == record::Phase::capture)
        refused(files, error.step, "arm " + error.arm, error.code, error.call, error.message);
    for (const char* arm : graph_arms(attempt))
      if (!judgement.first<CaptureLine>(files, arm))
        judgement.absent<CaptureLine>(files, concat("of arm ", arm));
  }
  return judgement.result(concat("every capture succeeded on ", attempt.ranks.size(), " ranks"),
                          "status ok, code 0, nothing unjoined");
}

}  // namespace graphproof::checks::d19

// D19: the capture ended without an error and with nothing left unjoined; the first operation that
// was refused is named.
#include "suites/checks/attempt/arms.h"
#include "suites/checks/attempt/capture.h"
#include "suites/checks/attempt/concat.h"
#include "suites/checks/attempt/detectors.h"
#include "suites/checks/attempt/judgement.h"

namespace graphproof::checks {

record::CheckResult capture_status(const Attempt& attempt) {
  Judgement judgement("D19.capture_status", attempt);
  if (!judgement.for_graph_cases()) return judgement.result("", "");
  const auto refused = [&](const RankFiles& files, const Line& line, const std::string& where,
                           const std::string& site) {
    judgement.defect(
        {.rank = files.rank,
         .step = integer(line, "step"),
         .what = concat("the capture of ", where, " failed"),
         .got = concat("code ", integer(line, "code").value_or(0), " at ",
                       site.empty() ? "an unnamed operation" : site, ": ", text(line, "message")),
         .want = "status ok, code 0",
         .why = "an operation that is not allowed during a capture invalidates the whole graph"});
  };
  // CUDA accepts some captures whose forked stream is not joined (docs/findings.md 3), so the graph
  // itself was asked.
  const auto joined = [&](const RankFiles& files, const Line& capture) {
    const nlohmann::json& unjoined = field(capture, "unjoined");
    if (!unjoined.is_array() || unjoined.empty()) return;
    judgement.defect(
        {.rank = files.rank,
         .step = integer(capture, "step"),
         .what = concat("the capture of ", capture_name(capture),
                        " left work that its stream does not wait for"),
         .got = concat(unjoined.size(), " unjoined, the first is ", unjoined.front().dump()),
         .want = "every forked stream joined before the capture ends",
         .why = "what follows the graph may begin before this work is done, so a right result is "
                "luck"});
  };
  for (const RankFiles& files : attempt.ranks) {
    for (const Line* capture : files.find("capture")) {
      if (succeeded(*capture)) {
        judgement.saw(files.rank);
        joined(files, *capture);
      } else {
        refused(files, *capture, capture_name(*capture), text(*capture, "site"));
      }
    }
    for (const Line* error : files.find("error")) {
      if (text(*error, "phase") == "capture")
        refused(files, *error, "arm " + text(*error, "arm"), text(*error, "call"));
    }
    for (const char* arm : graph_arms(attempt))
      if (!files.first("capture", arm))
        judgement.absent(files, concat("`capture` line of arm ", arm));
  }
  return judgement.result(concat("every capture succeeded on ", attempt.ranks.size(), " ranks"),
                          "status ok, code 0, nothing unjoined");
}

}  // namespace graphproof::checks

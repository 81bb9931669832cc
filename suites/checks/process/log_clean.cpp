// D21: the ranks' logs name no error, even if every exit status is 0.
#include "suites/checks/attempt/concat.h"
#include "suites/checks/attempt/judgement.h"
#include "suites/checks/process/log_signatures.h"

namespace graphproof::checks::d21 {

/// Every rank has its part of the batch's log, and no line of it matches an error signature.
record::CheckResult log_clean(Judgement& judgement, const Attempt& attempt) {
  constexpr std::size_t kShownHits = 1;
  for (const RankFiles& files : attempt.ranks) {
    if (!files.log) {
      judgement.defect({.rank = files.rank,
                        .step = std::nullopt,
                        .what = concat("the log of rank ", files.rank, " is missing"),
                        .got = "no file, or fewer bytes than context.json states",
                        .want = "the rank's part of its batch log",
                        .why = "a log that cannot be read may name any error"});
      continue;
    }
    judgement.confirm(files.rank);
    for (const LogHit& hit : scan_log(*files.log, kShownHits)) {
      judgement.defect({.rank = files.rank,
                        .step = std::nullopt,
                        .what = concat("the log of rank ", files.rank, " names an error (",
                                       hit.signature->name, ")"),
                        .got = concat("line ", hit.line_number, ": ", hit.line),
                        .want = "no line that names a known error",
                        .why = std::string(hit.signature->why)});
    }
  }
  return judgement.result(concat("no known error in the logs of ", attempt.ranks.size(), " ranks"),
                          "no line that names a known error");
}

}  // namespace graphproof::checks::d21

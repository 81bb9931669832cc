// D56: work on two streams that accesses the same bytes is ordered. Without an order results may be
// right in a test and wrong in training, because it is chance which work runs first.
#include "suites/checks/attempt/concat.h"
#include "suites/checks/attempt/judgement.h"

namespace graphproof::checks::d56 {

using record::RacesLine;

/// On the simulated device: whenever work on two streams accesses the same bytes and one of them
/// writes, events or the host order it. This covers eager steps, captures and replays.
record::CheckResult races(Judgement& judgement, const Attempt& attempt) {
  if (attempt.context.device != "sim")
    judgement.not_applicable(
        "only the simulated device records whether an order was enforced or happened by chance");
  if (judgement.settled()) return judgement.result("", "");
  std::int64_t accesses = 0;
  for (const RankFiles& files : attempt.ranks) {
    const RacesLine* line = judgement.first<RacesLine>(files);
    if (!line || line->accesses == 0) {
      judgement.absent<RacesLine>(files, "with inspected accesses");
      continue;
    }
    accesses += line->accesses;
    if (line->count == 0) {
      judgement.confirm(files.rank);
      continue;
    }
    judgement.defect(
        {.rank = files.rank,
         .step = std::nullopt,
         .what = "work on two streams accesses the same bytes, and nothing orders it",
         .got = concat(line->count, line->count == 1 ? " race: " : " races, the first ones: ",
                       shown(line->found)),
         .want = "an event that the later stream waits for, or one stream",
         .why = "on a GPU it is chance which work runs first, even if this run was right"});
  }
  return judgement.result(concat("inspected ", accesses, " accesses"),
                          "an order between all work on the same bytes");
}

}  // namespace graphproof::checks::d56

// D56: work on two streams that touches the same bytes is ordered. Results may be right without an
// order: work that wins the race in a test can lose it in training.
#include "suites/checks/attempt/concat.h"
#include "suites/checks/attempt/judgement.h"

namespace graphproof::checks::d56 {
namespace {

using record::RacesLine;

}  // namespace

/// On the simulated device: all work that touches the same bytes on two streams, one of them to
/// write, is ordered by events or the host, in eager steps, inside captures and around replays.
record::CheckResult races(Judgement& judgement, const Attempt& attempt) {
  if (attempt.context.device != "sim")
    judgement.not_applicable(
        "only the simulated device knows what is ordered and what happened to run first");
  if (judgement.settled()) return judgement.result("", "");
  std::int64_t looks = 0;
  for (const RankFiles& files : attempt.ranks) {
    const RacesLine* line = judgement.first<RacesLine>(files);
    if (!line || line->accesses == 0) {
      judgement.absent<RacesLine>(files, "that has looked at something");
      continue;
    }
    looks += line->accesses;
    if (line->count == 0) {
      judgement.confirm(files.rank);
      continue;
    }
    judgement.defect(
        {.rank = files.rank,
         .step = std::nullopt,
         .what = "work on two streams touches the same bytes, and nothing orders it",
         .got = concat(line->count, line->count == 1 ? " race: " : " races, the first ones: ",
                       shown(line->found)),
         .want = "an event that the later stream waits for, or one stream",
         .why =
             "which of them comes first is left to chance, on a GPU also when this run was right"});
  }
  return judgement.result(concat("looked at ", looks, " accesses"),
                          "an order between all work on the same bytes");
}

}  // namespace graphproof::checks::d56

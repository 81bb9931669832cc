// D39: the layers that round their weights did so in the first microbatch of each step, and no
// others did. D01 notices wrong copies, because the results then differ from eager's.
#include "suites/checks/attempt/arms.h"
#include "suites/checks/attempt/concat.h"
#include "suites/checks/attempt/judgement.h"

namespace graphproof::checks::d39 {

/// In every step each layer made one copy of each of its weights that are to be rounded. The number
/// of copies is judged because a layer that makes them in every microbatch has the same results.
record::CheckResult fp8_weights(Judgement& judgement, const Attempt& attempt) {
  const Expected& expected = judgement.expected();
  const std::int64_t stage_ranks = attempt.context.world_size / attempt.axes.integer("pp");
  const auto [arm, first, last] = WatchedSteps(expected);
  for (const RankFiles& files : attempt.ranks) {
    const std::vector<std::int64_t> want = rounded_weights(attempt.axes, files.rank / stage_ranks);
    for (std::int64_t step = first; step <= last; ++step) {
      const auto* line = judgement.first<record::Fp8WeightsLine>(files, arm, step);
      if (!line || line->copies.size() != want.size()) {
        judgement.absent<record::Fp8WeightsLine>(
            files, concat("of ", want.size(), " layers of arm ", arm), step);
        continue;
      }
      const std::vector<std::int64_t>& made = line->copies;
      if (made == want) {
        judgement.confirm(files.rank);
        continue;
      }
      std::size_t layer = 0;
      while (made[layer] == want[layer]) ++layer;
      judgement.defect(
          {.rank = files.rank,
           .step = step,
           .what = concat("layer ", layer,
                          " of this rank made another number of rounded copies in step ", step,
                          " of arm ", arm),
           .got = concat(made[layer], " copies"),
           .want = concat(want[layer], want[layer] == 0
                                           ? ": its weights are not rounded"
                                           : ", one of each weight in the first microbatch"),
           .why = made[layer] < want[layer] ? "the step uses copies of older weights"
                  : want[layer] == 0
                      ? "the layer runs in another layer's context"
                      : "every microbatch spends time on a rounding that changes nothing"});
    }
  }
  return judgement.result(concat("one copy of each weight in ", last - first + 1, " steps on ",
                                 attempt.ranks.size(), " ranks"),
                          "one copy of each rounded weight a step");
}

}  // namespace graphproof::checks::d39

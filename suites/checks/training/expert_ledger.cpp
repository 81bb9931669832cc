// D40: every token that was assigned to an expert was sent to it or counted as dropped, the same as
// in eager steps.
#include <numeric>

#include "suites/checks/attempt/arms.h"
#include "suites/checks/attempt/concat.h"
#include "suites/checks/attempt/judgement.h"

namespace graphproof::checks::d40 {
namespace {

using record::ExpertsLine;
using Counts = std::vector<std::int64_t>;

/// The sum of `counts`, [layers * experts], over the experts of one layer.
std::int64_t of_layer(const Counts& counts, std::size_t layers, std::size_t layer) {
  const std::size_t experts = counts.size() / layers;
  const auto begin = counts.begin() + static_cast<std::ptrdiff_t>(layer * experts);
  return std::accumulate(begin, begin + static_cast<std::ptrdiff_t>(experts), std::int64_t{0});
}

/// The `experts` line of a step of an arm. If it is missing or incomplete, reports that and returns
/// null.
const ExpertsLine* ledger_of(Judgement& judgement, const RankFiles& files, std::string_view arm,
                             std::int64_t step) {
  const ExpertsLine* line = judgement.first<ExpertsLine>(files, arm, step);
  if (!line) {
    judgement.absent<ExpertsLine>(files, concat("of arm ", arm), step);
    return nullptr;
  }
  const auto layers = static_cast<std::size_t>(judgement.expected_of(files).expert_layers);
  if (line->assignments > 0 && !line->dropped.empty() &&
      (layers == 0 || line->dropped.size() == layers) &&
      line->overflowed.size() == line->dropped.size() && !line->assigned.empty() &&
      line->assigned.size() % line->dropped.size() == 0 &&
      line->carried.size() == line->assigned.size())
    return line;
  judgement.defect(
      {.rank = files.rank,
       .step = step,
       .what = concat("the experts' ledger of arm ", arm, " is incomplete at step ", step),
       .got = record::line_json(*line).dump(),
       .want = "counts for each layer and expert",
       .why = "tokens that are not counted may be lost"});
  return nullptr;
}

bool same(const ExpertsLine& left, const ExpertsLine& right) {
  return left.assignments == right.assignments && left.assigned == right.assigned &&
         left.carried == right.carried && left.dropped == right.dropped &&
         left.overflowed == right.overflowed;
}

std::string moved(const ExpertsLine& ledger) {
  return concat("carried ", shown(ledger.carried), ", dropped ", shown(ledger.dropped));
}

/// Checks that the sums of one arm's line agree, for each layer.
void judge_sums(Judgement& judgement, const RankFiles& files, std::string_view arm,
                std::int64_t step, const ExpertsLine& ledger) {
  const auto found = [&](std::size_t layer, std::string what, std::string got, std::string want,
                         std::string why) {
    judgement.defect(
        {.rank = files.rank,
         .step = step,
         .what = concat("layer ", layer, " of arm ", arm, " ", what, " at step ", step),
         .got = std::move(got),
         .want = std::move(want),
         .why = std::move(why)});
  };
  for (std::size_t layer = 0; layer < ledger.dropped.size(); ++layer) {
    const std::size_t layers = ledger.dropped.size();
    const std::int64_t assigned = of_layer(ledger.assigned, layers, layer),
                       carried = of_layer(ledger.carried, layers, layer);
    const std::int64_t dropped = ledger.dropped[layer], overflowed = ledger.overflowed[layer];
    if (assigned != ledger.assignments)
      return found(layer, "assigned another number than its tokens need",
                   concat(assigned, " assignments"), concat(ledger.assignments),
                   "every token has its number of experts");
    if (carried + dropped != assigned)
      return found(
          layer, "lost tokens without counting them",
          concat(carried, " carried and ", dropped, " dropped of ", assigned, " assignments"),
          concat(assigned - carried, " dropped"),
          "tokens over capacity that are not counted as dropped are lost without a trace");
    if ((dropped > 0) != (overflowed > 0))
      return found(layer, "raised the wrong overflow flag",
                   concat(overflowed, " with ", dropped, " dropped"),
                   dropped > 0 ? "1 or more" : "0",
                   "the owner of a job learns of dropped tokens from this flag");
  }
}

}  // namespace

/// In every step all assignments of each layer were carried or counted as dropped, the overflow
/// flag is set exactly if some were dropped, and all counts equal those of the eager step.
/// Unexercised if no token was over capacity.
record::CheckResult expert_ledger(Judgement& judgement, const Attempt& attempt) {
  const Expected& expected = judgement.expected();
  const auto [arm, first, last] = WatchedSteps(expected);
  for (const RankFiles& files : attempt.ranks) {
    bool over_capacity = false;
    for (std::int64_t step = first; step <= last; ++step) {
      const ExpertsLine* ledger = ledger_of(judgement, files, arm, step);
      if (!ledger) continue;
      judge_sums(judgement, files, arm, step, *ledger);
      for (const std::int64_t dropped : ledger->dropped) over_capacity |= dropped > 0;
      if (expected.graph) {
        const ExpertsLine* eager = ledger_of(judgement, files, "lockstep_eager", step);
        if (!eager) continue;
        if (!same(*eager, *ledger))
          judgement.defect(
              {.rank = files.rank,
               .step = step,
               .what = concat("the replay of step ", step, " routed other tokens than eager"),
               .got = moved(*ledger),
               .want = moved(*eager),
               .why = "a replay that routes by the captured tokens trains the wrong experts"});
      }
      judgement.confirm(files.rank);
    }
    if (!over_capacity && attempt.axes.text("dispatch") == "drop_and_pad")
      judgement.unexercised(
          concat("on rank ", files.rank,
                 " no token was over capacity, so a silent drop would not be noticed"));
  }
  return judgement.result(concat("every assignment carried or counted in ", last - first + 1,
                                 " steps on ", attempt.ranks.size(), " ranks"),
                          "as many carried and dropped as assigned, as eager");
}

}  // namespace graphproof::checks::d40

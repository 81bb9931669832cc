// D53: the parallel eager arm computes what one rank computes alone. Eager and graph arms share the
// parallel layout, so no other check finds a defect of the layout.
#include <algorithm>
#include <array>

#include "suites/checks/attempt/concat.h"
#include "suites/checks/attempt/distance.h"

namespace graphproof::checks::d53 {
namespace {

using record::ReferenceLine;

/// Beginnings of the field `compared`: losses and gradients.
constexpr std::array<std::string_view, 2> kCompared = {"loss", "grad"};

}  // namespace

/// Losses and gradients of the parallel eager arm are within their bound of the single-rank model,
/// and nearer than a defect may move them.
record::CheckResult layout_reference(Judgement& judgement, const Attempt& attempt) {
  const double widest = widest_bound(attempt.axes);
  for (const RankFiles& files : attempt.ranks) {
    const auto lines = judgement.lines<ReferenceLine>(files);
    for (const ReferenceLine& line : lines)
      judge_distance(judgement, files, line.distance,
                     {.measured = concat("the parallel arm's ", line.compared),
                      .reference = "the single-rank model",
                      .bounded = line.compared,
                      .why = "the layout changes what the model computes"},
                     widest);
    for (const std::string_view compared : kCompared) {
      // Only the last stage of a pipeline has losses.
      if (compared == "loss" &&
          files.rank <
              attempt.context.world_size - attempt.context.world_size / attempt.axes.integer("pp"))
        continue;
      if (std::ranges::none_of(lines, [&](const ReferenceLine& line) {
            return line.compared.starts_with(compared);
          }))
        judgement.absent<ReferenceLine>(files,
                                        concat("whose compared quantity begins with ", compared));
    }
  }
  return judgement.result(
      concat("losses and gradients within their bounds on ", attempt.ranks.size(), " ranks"),
      "within the bound of reordered sums");
}

}  // namespace graphproof::checks::d53

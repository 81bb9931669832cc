#include "suites/checks/attempt/distance.h"

#include <cmath>

#include "suites/checks/attempt/concat.h"

namespace graphproof::checks {
namespace {

// In fp32, reordered sums explain differences of 1e-3 of the largest element for the default model
// (2^-24 times the length of the longest sum times the number of chained sums) and a little more
// for larger models. A wrong shard or a missing reduction causes a tenth or more, which a larger
// bound would accept.
constexpr double kWidestRelativeBound = 5e-2;
// bf16 values have eight significant bits: forty layers of independent roundings explain a third of
// the largest element, and a wrong shard or a missing reduction causes a half of it or more.
constexpr double kWidestRelativeBoundBf16 = 0.35;
// fp16 values have two bits more.
constexpr double kWidestRelativeBoundFp16 = kWidestRelativeBoundBf16 / 4;

}  // namespace

double widest_bound(const Axes& axes) {
  const std::string precision = axes.text("precision");
  return precision == "bf16" || axes.text("autocast") == "bf16" ? kWidestRelativeBoundBf16
         : precision == "fp16"                                  ? kWidestRelativeBoundFp16
                                                                : kWidestRelativeBound;
}

void judge_distance(Judgement& judgement, const RankFiles& files, const record::Distance& distance,
                    const DistanceWords& words, double widest, std::optional<std::int64_t> step) {
  const auto& [tensors, max_abs, max_rel, bound, worst, why] = distance;
  const auto known = [](double value) { return std::isfinite(value) && value >= 0; };
  if (!known(max_abs) || !known(max_rel) || !known(bound) || tensors <= 0) {
    judgement.defect({.rank = files.rank,
                      .step = step,
                      .what = concat("the distance of ", words.bounded, " from ", words.reference,
                                     " is unknown"),
                      .got = shown(distance),
                      .want = "finite max_abs, max_rel and bound of at least one tensor",
                      .why = "NaN is within no bound"});
    return;
  }
  // bound and max_abs are in the tensor's unit; max_abs / max_rel is its largest element.
  const bool too_wide = bound * max_rel > widest * max_abs;
  if (max_abs > bound) {
    judgement.defect({.rank = files.rank,
                      .step = step,
                      .what = concat(words.measured, " differ from ", words.reference),
                      .got = concat(max_abs, " (", max_rel, " of the largest element)",
                                    worst.empty() ? "" : " in `" + worst + "`"),
                      .want = concat(bound, " at most: ", why),
                      .why = words.why});
  } else if (too_wide && max_rel > widest) {
    judgement.defect({.rank = files.rank,
                      .step = step,
                      .what = concat(words.measured, " differ from ", words.reference,
                                     " as far as a defect may move them"),
                      .got = concat(max_rel, " of the largest element",
                                    worst.empty() ? "" : " in `" + worst + "`"),
                      .want = concat(widest, " at most, though ", why, " would explain ",
                                     bound * max_rel / max_abs),
                      .why = words.why});
  } else {
    judgement.confirm(files.rank);
  }
}

}  // namespace graphproof::checks

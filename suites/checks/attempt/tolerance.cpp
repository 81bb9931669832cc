#include "suites/checks/attempt/tolerance.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "matrix/case/tolerance.h"
#include "suites/checks/attempt/concat.h"
#include "suites/checks/attempt/distance.h"

namespace graphproof::checks {
namespace {

using record::DistancesLine, record::TensorDistance;

matrix::Tolerances tolerances_of(const Attempt& attempt) {
  const std::string text = attempt.axes.text("tolerance");
  return matrix::parse_tolerances(text, matrix::Origin::option("tolerance", text));
}

/// Whether a comparison is of two eager runs.
bool of_eager(std::string_view compared) {
  return compared == "eager_repeats" || compared == "eager_again";
}

/// Relative to the largest element of its tensor.
double relative(const TensorDistance& one) {
  if (one.max_abs == 0) return 0;
  return one.largest > 0 ? one.max_abs / one.largest : std::numeric_limits<double>::infinity();
}

/// What eager runs differ by, on all ranks: collectives carry a difference of one rank to the
/// others.
struct Spread {
  bool any = false;  // whether any tensor differs in any step
  /// Of the class until a step, relative to the largest element of its tensor. Later steps differ
  /// by more, because each starts from the parameters of the one before.
  double largest = 0;
};
Spread eager_spread(Judgement& judgement, std::string_view tensor_class, std::int64_t until) {
  Spread spread;
  for (const RankFiles& files : judgement.attempt().ranks)
    for (const DistancesLine& line : judgement.lines<DistancesLine>(files)) {
      if (!of_eager(line.compared)) continue;
      for (const TensorDistance& one : line.tensors) {
        spread.any = true;
        if (line.step <= until && matrix::class_of_tensor(one.tensor) == tensor_class)
          spread.largest = std::max(spread.largest, relative(one));
      }
    }
  return spread;
}

const DistancesLine* distances_of(Judgement& judgement, const RankFiles& files,
                                  const CompareLine& line) {
  for (const DistancesLine& one : judgement.lines<DistancesLine>(files))
    if (one.compared == line.compared && one.left == line.left && one.right == line.right &&
        one.step == line.step)
      return &one;
  return nullptr;
}

/// One tensor, its class, and what the case permits.
class TensorLimits {
 public:
  TensorLimits(const DistancesLine& line, const TensorDistance& one, std::string tensor_class,
               const matrix::Tolerance& rule, std::optional<Spread> spread, double widest)
      : one_(one),
        class_(std::move(tensor_class)),
        rule_(rule),
        spread_(spread),
        rounding_(std::min(line.rounding, widest)),
        rounding_why_(line.rounding < widest
                          ? line.rounding_why
                          : concat("no more, because a wider bound would hide defects, than ",
                                   widest, " of the largest element")) {}

  std::optional<BeyondTolerance> judge() const {
    if (one_.incomparable > 0 || !std::isfinite(one_.max_abs) || !std::isfinite(one_.largest) ||
        !std::isfinite(one_.beyond_rtol) || !std::isfinite(rounding_))
      return BeyondTolerance{.got = concat(what(), " differs in ", one_.incomparable,
                                           " elements that are not finite in both arms"),
                             .want = "finite elements, or the same bytes",
                             .why = "what is not finite is within no tolerance"};
    if (one_.resolution <= 0)
      return BeyondTolerance{.got = concat(what(), " differs, and holds integers"),
                             .want = "the same bytes",
                             .why = "integers do not round"};
    const bool within_rule = one_.beyond_rtol <= rule_.atol,
               within_spread = !spread_ || one_.max_abs <= permitted_by_spread(),
               within_rounding = one_.max_abs <= permitted_by_rounding();
    if (within_rule && within_spread && within_rounding) return std::nullopt;
    // The smallest limit that is exceeded decides.
    const bool spread_decides =
        !within_spread && (within_rounding || permitted_by_spread() <= permitted_by_rounding());
    const bool rounding_decides = !within_rounding && !spread_decides;
    return BeyondTolerance{.got = distance(),
                           .want = wanted(spread_decides, rounding_decides),
                           .why = reason(spread_decides, rounding_decides)};
  }

 private:
  /// Eager runs that agree to the last bit permit nothing. Otherwise a difference below the
  /// resolution of the type cannot be seen in them, so the spread is at least that.
  double permitted_by_spread() const {
    if (!spread_->any) return 0;
    return kSpreadFactor * std::max(spread_->largest, one_.resolution) * one_.largest;
  }
  double permitted_by_rounding() const { return rounding_ * one_.largest; }
  double permitted_by_rule() const { return rule_.atol + rule_.rtol * std::abs(one_.left); }

  std::string what() const { return concat("`", one_.tensor, "`"); }
  std::string distance() const {
    return concat(what(), " element ", one_.element, " is ", shown(one_.right), ", off by ",
                  one_.max_abs, " (", relative(one_), " of the largest element); ", one_.differing,
                  " of ", one_.elements, " elements differ");
  }
  std::string wanted(bool spread_decides, bool rounding_decides) const {
    const auto marked = [](bool decides) { return decides ? " (this decides)" : ""; };
    const bool rule_decides = !spread_decides && !rounding_decides;
    std::string text =
        concat(shown(one_.left), " within the smallest of: the rule for ", class_, ", ",
               permitted_by_rule(), " here (rtol ", rule_.rtol, ", atol ", rule_.atol,
               rule_decides ? concat("; all elements need ", one_.beyond_rtol) : "", ")",
               marked(rule_decides));
    if (spread_ && !spread_->any)
      text +=
          concat("; the spread of eager runs, 0: they agree byte for byte", marked(spread_decides));
    else if (spread_)
      text +=
          concat("; the spread of eager runs, ", permitted_by_spread(), " here: ", kSpreadFactor,
                 " times ", std::max(spread_->largest, one_.resolution), " of the largest element",
                 spread_->largest < one_.resolution ? ", the resolution of the type" : "",
                 marked(spread_decides));
    return text + concat("; rounding, ", permitted_by_rounding(), " here: ", rounding_why_,
                         marked(rounding_decides));
  }
  std::string reason(bool spread_decides, bool rounding_decides) const {
    if (spread_decides && !spread_->any)
      return "the eager runs show that nothing in this case depends on chance, so a graph that "
             "differs runs something else";
    if (spread_decides)
      return "the graph differs from eager by more than eager differs from itself, which no order "
             "of additions explains";
    if (rounding_decides)
      return "adding in another order moves a result by less, so something else differs too";
    return spread_ ? "the graph differs from eager by more than the matrix accepts"
                   : "the eager runs differ by more than the matrix accepts, so no graph can be "
                     "held to it";
  }

  const TensorDistance& one_;
  const std::string class_;
  const matrix::Tolerance rule_;
  const std::optional<Spread> spread_;
  const double rounding_;
  const std::string rounding_why_;
};

double largest_of(Judgement& judgement, const std::function<bool(std::string_view)>& counts) {
  double largest = 0;
  for (const RankFiles& files : judgement.attempt().ranks)
    for (const DistancesLine& line : judgement.lines<DistancesLine>(files))
      if (counts(line.compared))
        for (const TensorDistance& one : line.tensors) largest = std::max(largest, relative(one));
  return largest;
}

}  // namespace

bool tolerates(const Attempt& attempt, std::string_view tensor_class) {
  const matrix::Tolerances tolerances = tolerances_of(attempt);
  return tensor_class.empty() ? !tolerances.empty() : tolerances.contains(tensor_class);
}

std::optional<BeyondTolerance> beyond_tolerance(Judgement& judgement, const RankFiles& files,
                                                const CompareLine& line,
                                                std::string_view tensor_class) {
  const Attempt& attempt = judgement.attempt();
  const matrix::Tolerances tolerances = tolerances_of(attempt);
  const DistancesLine* distances = distances_of(judgement, files, line);
  if (distances == nullptr || distances->tensors.empty())
    return BeyondTolerance{.got = "other bytes, and no `distances` line that says how far apart",
                           .want = "the distance of every tensor that differs",
                           .why = "a difference of unknown size is within no tolerance"};
  for (const TensorDistance& one : distances->tensors) {
    const std::string name(matrix::class_of_tensor(one.tensor));
    if (!tensor_class.empty() && name != tensor_class) continue;
    const auto rule = tolerances.find(name);
    if (rule == tolerances.end())
      return BeyondTolerance{
          .got = concat("`", one.tensor, "` element ", one.element, " is ", shown(one.right), ", ",
                        one.differing, " of ", one.elements, " elements differ, by ", one.max_abs,
                        " at most"),
          .want = concat(shown(one.left), ", byte for byte: the case states no tolerance for ",
                         name.empty() ? "masks" : name),
          .why = "what has no tolerance is compared byte for byte"};
    std::optional<Spread> spread;
    if (!of_eager(line.compared)) spread = eager_spread(judgement, name, line.step);
    const TensorLimits limits(*distances, one, name, rule->second, spread,
                              widest_bound(attempt.axes));
    if (auto beyond = limits.judge()) return beyond;
  }
  return std::nullopt;
}

bool agree(Judgement& judgement, const RankFiles& files, const CompareLine& line) {
  if (line.equal) return true;
  return tolerates(judgement.attempt()) && !beyond_tolerance(judgement, files, line);
}

std::string spread_summary(Judgement& judgement, std::string_view compared) {
  if (!tolerates(judgement.attempt())) return "";
  const double spread = largest_of(judgement, of_eager),
               apart = largest_of(judgement, [&](std::string_view one) { return one == compared; });
  if (spread == 0 && apart == 0)
    return "; byte for byte, as the eager runs among themselves, so the tolerance was not used";
  return concat("; within the tolerance: ", apart,
                " of a tensor's largest element at most, eager runs among themselves ", spread);
}

}  // namespace graphproof::checks

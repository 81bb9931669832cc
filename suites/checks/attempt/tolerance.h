// Judges a difference of two arms in a case that states a tolerance (axis `tolerance`).
//
// An element of the graph may differ from eager by the smallest of three numbers:
//
//   rule      what the user accepts: atol + rtol * |eager|
//   spread    kSpreadFactor times what eager runs of the same case differ by among themselves
//   rounding  what adding in another order can do at all, by a bound on sums
//
// The spread (A/A) is the reason why a difference is no defect: if three eager runs agree in every
// byte of every step, nothing in the case depends on chance, and the graph must have the same
// bytes, whatever the rule permits. The rounding is the reason why the spread is no defect: eager
// runs that differ by more than roundings explain race, and they are judged by rule and rounding
// alone.
//
// Spread and rounding are relative to the largest element of a tensor, because an element near zero
// is a sum that nearly cancels, whose error has the size of its terms and not of its value (Higham,
// Accuracy and Stability of Numerical Algorithms, 2nd ed. 2002, section 4.2: the error of a sum is
// at most gamma_(n-1) times the sum of the absolute values). The bound of rounding is written by
// the ranks, because it follows from the sizes of the model (suites/case/reference.h: of the order
// sqrt(n) * u for sums of n terms, Higham and Mary 2019, doi 10.1137/18M1226312); the judge
// caps it, see widest_bound().
#pragma once

#include <optional>
#include <string>

#include "suites/checks/attempt/comparison.h"

namespace graphproof::checks {

/// How many times the spread of eager runs a difference may have. Each difference is that of two
/// runs of one distribution. If errors are nearly normal, the graph's exceeds f times the largest
/// of m independent eager ones with a probability of about E|x|^m * (0.8 / f)^m for a standard
/// normal x (0.8 is the density of |x| at 0). The smallest class are the losses: two comparisons of
/// eager runs and two microbatches make m = 4 in the first step that differs, and 3e-4 for f = 8.
/// Most of that is below the resolution of the type, which a spread never is. Tensors of hundreds
/// of elements and later steps have far less. A defect moves a result by orders of magnitude more.
inline constexpr double kSpreadFactor = 8;

/// Whether the case states a tolerance for `tensor_class`, or for any class if it is empty.
bool tolerates(const Attempt& attempt, std::string_view tensor_class = {});

/// Why a difference is more than the case permits. The texts are those of a Defect.
struct BeyondTolerance {
  std::string got, want, why;
};
/// Judges the tensors of a comparison that are not equal; of `tensor_class` alone if it is not
/// empty. Nothing if all of them are within the tolerance. A comparison of eager runs
/// (eager_repeats, eager_again) is held to rule and rounding. REQUIRES: tolerates(attempt).
std::optional<BeyondTolerance> beyond_tolerance(Judgement& judgement, const RankFiles& files,
                                                const CompareLine& line,
                                                std::string_view tensor_class = {});

/// Whether the arms of a comparison agree: byte for byte, or within the tolerance that the case
/// states.
bool agree(Judgement& judgement, const RankFiles& files, const CompareLine& line);

/// For the summary of a check that passed: by how much the eager runs and the two arms of
/// comparisons named `compared` differ. Empty if the case states no tolerance.
std::string spread_summary(Judgement& judgement, std::string_view compared);

}  // namespace graphproof::checks

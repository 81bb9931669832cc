#include "suites/checks/attempt/comparison.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "suites/checks/attempt/concat.h"
#include "suites/checks/attempt/tolerance.h"

namespace graphproof::checks {
namespace {

std::string describe(const std::optional<record::TensorMismatch>& mismatch) {
  if (!mismatch) return "the comparison names no tensor";
  return concat("`", mismatch->tensor, "` element ", mismatch->element, " is ",
                shown(mismatch->right), ", ", mismatch->differing, " of ", mismatch->elements,
                " elements differ, by ", shown(mismatch->max_abs), " at most");
}

/// The rank's first comparison that covers the same tensors as `line`: the outputs of a step, the
/// losses of an evaluation, or the results of inference in a job that trains.
const CompareLine& first_of_its_sort(const RankFiles& files, const CompareLine& line) {
  const auto sort = [](const CompareLine& one) {
    return one.compared.starts_with("evaluation") ? 1 : one.compared == "rollout" ? 2 : 0;
  };
  for (const CompareLine& other : files.lines<CompareLine>())
    if (sort(other) == sort(line)) return other;
  return line;
}

void judge_same(Judgement& judgement, const RankFiles& files, const ArmPair& pair,
                std::int64_t step, const std::string& what, const std::string& left,
                const std::string& right) {
  if (left == right) return;
  judgement.defect(
      {.rank = files.rank,
       .step = step,
       .what = concat(what, " of arms ", pair.left, " and ", pair.right, " differ at step ", step),
       .got = concat(pair.right, " has ", right),
       .want = concat(left, ", as ", pair.left),
       .why = "the arms did not compute the same"});
}

/// In a case that states a tolerance: classes without one have equal digests, and a comparison
/// shows how far the others are apart if their digests differ.
void judge_digests(Judgement& judgement, const RankFiles& files, const ArmPair& pair,
                   std::int64_t step, const record::StepLine& left, const record::StepLine& right) {
  const auto both = [&](std::string_view tensor_class, const std::string& one,
                        const std::string& other) {
    if (one == other) return;
    if (!tolerates(judgement.attempt(), tensor_class)) {
      judge_same(judgement, files, pair, step, concat("the digests of ", tensor_class), one, other);
      return;
    }
    for (const CompareLine* line : comparisons(judgement, files, pair.compared))
      if (line->step == step) return;
    judgement.absent(files, concat("comparison `", pair.compared, "`, although digests differ"),
                     step);
  };
  both("losses", left.loss_bits, right.loss_bits);
  both("losses", left.digest.losses, right.digest.losses);
  both("gradients", left.digest.grads, right.digest.grads);
  both("parameters", left.digest.params, right.digest.params);
}

}  // namespace

std::vector<const CompareLine*> comparisons(Judgement& judgement, const RankFiles& files,
                                            std::string_view compared) {
  std::vector<const CompareLine*> result;
  for (const CompareLine& line : judgement.lines<CompareLine>(files))
    if (line.compared == compared) result.push_back(&line);
  return result;
}

void judge_comparison(Judgement& judgement, const RankFiles& files, const CompareLine& line,
                      const ArmPair& pair) {
  if (line.left != pair.left || line.right != pair.right) {
    judgement.defect({.rank = files.rank,
                      .step = line.step,
                      .what = concat("the comparison `", pair.compared, "` of step ", line.step,
                                     " compares the wrong arms"),
                      .got = concat(line.left, " with ", line.right),
                      .want = concat(pair.left, " with ", pair.right),
                      .why = "a comparison of other arms proves nothing about this pair"});
    return;
  }
  const CompareLine& first = first_of_its_sort(files, line);
  const bool nothing = line.tensors <= 0 || line.bytes <= 0;
  if (nothing || line.tensors != first.tensors || line.bytes != first.bytes) {
    judgement.defect(
        {.rank = files.rank,
         .step = line.step,
         .what = concat("the comparison `", pair.compared, "` of step ", line.step, " compared ",
                        nothing ? "nothing" : "other tensors than the first"),
         .got = concat(line.tensors, " tensors, ", line.bytes, " bytes"),
         .want = nothing ? "more than zero of both"
                         : concat(first.tensors, " tensors, ", first.bytes,
                                  " bytes, as the rank's first comparison"),
         .why = nothing ? "a comparison of nothing always finds equality"
                        : "tensors that were left out may hold anything"});
    return;
  }
  if (line.equal && !line.mismatch) {
    judgement.confirm(files.rank);
    return;
  }
  const std::string what = concat("`", pair.compared, "`: ", pair.right, " differs from ",
                                  pair.left, " at step ", line.step);
  if (tolerates(judgement.attempt())) {
    const auto beyond = beyond_tolerance(judgement, files, line);
    if (beyond)
      judgement.defect({.rank = files.rank,
                        .step = line.step,
                        .what = what,
                        .got = beyond->got,
                        .want = beyond->want,
                        .why = beyond->why});
    else
      judgement.confirm(files.rank);
    return;
  }
  judgement.defect(
      {.rank = files.rank,
       .step = line.step,
       .what = what,
       .got = describe(line.mismatch),
       .want = line.mismatch ? concat(shown(line.mismatch->left), ", byte for byte, as ", pair.left)
                             : concat("what ", pair.left, " has, byte for byte"),
       .why = "the two arms start from one seed and run the same step"});
}

void judge_final_comparison(Judgement& judgement, const RankFiles& files, const ArmPair& pair,
                            std::int64_t last_step) {
  bool reaches_the_end = false;
  for (const CompareLine* line : comparisons(judgement, files, pair.compared)) {
    judge_comparison(judgement, files, *line, pair);
    reaches_the_end |= line->step >= last_step;
  }
  if (!reaches_the_end)
    judgement.absent(
        files, concat("comparison `", pair.compared, "` of ", pair.left, " with ", pair.right),
        last_step);
}

void judge_steps(Judgement& judgement, const RankFiles& files, const ArmPair& pair,
                 std::int64_t first, std::int64_t last) {
  using record::StepLine;
  if (!judgement.expected().trains) return;  // no losses; the result is compared whole
  const std::int64_t microbatches = judgement.expected().microbatches;
  for (std::int64_t step = first; step <= last; ++step) {
    const StepLine* left = judgement.first<StepLine>(files, pair.left, step);
    const StepLine* right = judgement.first<StepLine>(files, pair.right, step);
    if (!left) judgement.absent<StepLine>(files, concat("of arm ", pair.left), step);
    if (!right) judgement.absent<StepLine>(files, concat("of arm ", pair.right), step);
    for (const StepLine* line : {left, right}) {
      if (!line) continue;
      const bool finite = !line->loss.empty() && std::ranges::all_of(line->loss, [](double loss) {
        return std::isfinite(loss);
      });
      if (finite && std::ssize(line->loss) == microbatches) continue;
      judgement.defect({.rank = files.rank,
                        .step = step,
                        .what = finite ? concat("arm ", line->arm, " lacks a loss at step ", step)
                                       : concat("the loss of arm ", line->arm,
                                                " is no finite number at step ", step),
                        .got = shown(line->loss),
                        .want = concat("a finite loss of each of ", microbatches, " microbatches"),
                        .why = "NaN equals nothing, so no comparison with it can be trusted"});
    }
    if (!left || !right) continue;
    if (tolerates(judgement.attempt())) {
      judge_digests(judgement, files, pair, step, *left, *right);
      continue;
    }
    judge_same(judgement, files, pair, step, "the loss bits", left->loss_bits, right->loss_bits);
    judge_same(judgement, files, pair, step, "the digests", shown(left->digest),
               shown(right->digest));
  }
}

}  // namespace graphproof::checks

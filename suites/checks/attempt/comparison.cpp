#include "suites/checks/attempt/comparison.h"

#include <iterator>

#include "suites/checks/attempt/concat.h"

namespace graphproof::checks {
namespace {

std::string step_of(const Line& line) {
  const auto step = integer(line, "step");
  return step ? concat("step ", *step) : std::string("a step without number");
}

std::string describe(const nlohmann::json& mismatch) {
  if (!mismatch.is_object()) return "the comparison names no tensor";
  const auto part = [&](const char* key) {
    const auto found = mismatch.find(key);
    if (found == mismatch.end() || found->is_null()) return std::string("?");
    return found->is_string() ? found->get<std::string>() : found->dump();
  };
  return concat("`", part("tensor"), "` element ", part("element"), " is ", part("right"), ", ",
                part("differing"), " of ", part("elements"), " elements differ, by ",
                part("max_abs"), " at most");
}

/// What every comparison of the rank has to compare: the outputs of a step, or in evaluation its
/// losses.
const Line& first_alike(const RankFiles& files, const Line& line) {
  const auto of_evaluation = [](const Line& one) {
    return text(one, "subject").starts_with("evaluation");
  };
  for (const Line* other : files.find("compare"))
    if (of_evaluation(*other) == of_evaluation(line)) return *other;
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
       .got = concat(pair.right, " has ", right.empty() ? "none" : right),
       .want = concat(left.empty() ? "none" : left, ", as ", pair.left),
       .why = "the arms did not compute the same"});
}

}  // namespace

std::vector<const Line*> comparisons(const RankFiles& files, std::string_view subject) {
  std::vector<const Line*> result;
  for (const Line* line : files.find("compare"))
    if (is(*line, "subject", subject)) result.push_back(line);
  return result;
}

void judge_comparison(Judgement& judgement, const RankFiles& files, const Line& line,
                      const ArmPair& pair) {
  const std::string left = text(line, "left"), right = text(line, "right");
  const auto step = integer(line, "step");
  if (left != pair.left || right != pair.right) {
    judgement.defect({.rank = files.rank,
                      .step = step,
                      .what = concat("the comparison `", pair.subject, "` of ", step_of(line),
                                     " compares the wrong arms"),
                      .got = concat(left, " with ", right),
                      .want = concat(pair.left, " with ", pair.right),
                      .why = "an arm compared with another one proves nothing about this pair"});
    return;
  }
  const auto tensors = integer(line, "tensors").value_or(0),
             bytes = integer(line, "bytes").value_or(0);
  const Line& first = first_alike(files, line);
  const auto all_tensors = integer(first, "tensors").value_or(0),
             all_bytes = integer(first, "bytes").value_or(0);
  if (tensors <= 0 || bytes <= 0 || tensors != all_tensors || bytes != all_bytes) {
    const bool nothing = tensors <= 0 || bytes <= 0;
    judgement.defect(
        {.rank = files.rank,
         .step = step,
         .what = concat("the comparison `", pair.subject, "` of ", step_of(line), " compared ",
                        nothing ? "nothing" : "something else than the first"),
         .got = concat(tensors, " tensors, ", bytes, " bytes"),
         .want = nothing ? "more than zero of both"
                         : concat(all_tensors, " tensors, ", all_bytes,
                                  " bytes, as the rank's first comparison"),
         .why = nothing ? "nothing always equals nothing" : "what was left out may hold anything"});
    return;
  }
  if (flag(line, "equal") == true && field(line, "mismatch").is_null()) {
    judgement.saw(files.rank);
    return;
  }
  const nlohmann::json& mismatch = field(line, "mismatch");
  const bool named = mismatch.is_object() && mismatch.contains("left");
  judgement.defect({.rank = files.rank,
                    .step = step,
                    .what = concat("`", pair.subject, "`: ", pair.right, " differs from ",
                                   pair.left, " at ", step_of(line)),
                    .got = describe(mismatch),
                    .want = named
                                ? concat(mismatch["left"].dump(), ", byte for byte, as ", pair.left)
                                : concat("what ", pair.left, " has, byte for byte"),
                    .why = "the two arms start from one seed and run the same step"});
}

void judge_final_comparison(Judgement& judgement, const RankFiles& files, const ArmPair& pair,
                            std::int64_t last_step) {
  bool reaches_the_end = false;
  for (const Line* line : comparisons(files, pair.subject)) {
    judge_comparison(judgement, files, *line, pair);
    reaches_the_end |= integer(*line, "step").value_or(-1) >= last_step;
  }
  if (!reaches_the_end)
    judgement.absent(files,
                     concat("comparison `", pair.subject, "` of ", pair.left, " with ", pair.right),
                     last_step);
}

void judge_steps(Judgement& judgement, const RankFiles& files, const ArmPair& pair,
                 std::int64_t first, std::int64_t last) {
  if (!judgement.expected().trains) return;  // no losses; the result is compared whole
  const std::int64_t microbatches = judgement.expected().microbatches;
  for (std::int64_t step = first; step <= last; ++step) {
    const Line* left = files.first("step", pair.left, step);
    const Line* right = files.first("step", pair.right, step);
    if (!left) judgement.absent(files, concat("`step` line of arm ", pair.left), step);
    if (!right) judgement.absent(files, concat("`step` line of arm ", pair.right), step);
    for (const Line* line : {left, right}) {
      if (!line || (finite(*line, "loss") && std::ssize(field(*line, "loss")) == microbatches))
        continue;
      judgement.defect(
          {.rank = files.rank,
           .step = step,
           .what = finite(*line, "loss")
                       ? concat("arm ", text(*line, "arm"), " lost a loss at step ", step)
                       : concat("the loss of arm ", text(*line, "arm"),
                                " is no finite number at step ", step),
           .got = field(*line, "loss").dump(),
           .want = concat("a finite loss of each of ", microbatches, " microbatches"),
           .why = "NaN equals nothing, so no comparison that it takes part in can be trusted"});
    }
    if (!left || !right) continue;
    judge_same(judgement, files, pair, step, "the loss bits", text(*left, "loss_bits"),
               text(*right, "loss_bits"));
    const nlohmann::json &ours = field(*left, "digest"), &theirs = field(*right, "digest");
    judge_same(judgement, files, pair, step, "the digests", ours.is_null() ? "" : ours.dump(),
               theirs.is_null() ? "" : theirs.dump());
  }
}

}  // namespace graphproof::checks

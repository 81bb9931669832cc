// D53: the parallel eager arm computes what one rank computes alone. Eager and graph share a layout, so a defect of the
// layout shows nowhere else.
#include <algorithm>
#include <array>

#include "suites/checks/detectors.h"
#include "suites/checks/judgement.h"
#include "suites/checks/say.h"

namespace graphproof::checks {
namespace {

// Reordered fp32 sums explain differences of 1e-3 of the largest element for the default model (2^-24 times the longest
// sum times the chained sums), a little more for larger ones; a wrong shard or a missing reduction makes a tenth or
// more. A wider bound sees nothing.
constexpr double kWidestRelativeBound = 5e-2;
// bf16 values carry eight bits: forty layers of independent roundings explain a third of the largest element, and a
// wrong shard or a missing reduction makes a half or more of it.
constexpr double kWidestRelativeBoundBf16 = 0.35;
// fp16 has two bits more.
constexpr double kWidestRelativeBoundFp16 = kWidestRelativeBoundBf16 / 4;

constexpr std::array<std::string_view, 2> kSubjects = {"loss", "grad"};  // beginnings: losses, gradients

void judge_line(Judgement& judgement, const RankFiles& files, const Line& line, double widest) {
  const std::string subject = text(line, "subject");
  const auto max_abs = number(line, "max_abs"), max_rel = number(line, "max_rel"), bound = number(line, "bound");
  if (!max_abs || !max_rel || !bound || *max_abs < 0 || *max_rel < 0 || *bound < 0 ||
      integer(line, "tensors").value_or(0) <= 0) {
    judgement.defect({.rank = files.rank,
                      .step = integer(line, "step"),
                      .what = say("the distance of ", subject, " from the single-rank model is unknown"),
                      .got = line.fields.dump(),
                      .want = "finite max_abs, max_rel and bound of at least one tensor",
                      .why = "NaN is within no bound"});
    return;
  }
  // bound and max_abs are in the tensor's unit; max_abs / max_rel is its largest element.
  if (*max_abs > *bound) {
    judgement.defect({.rank = files.rank,
                      .step = integer(line, "step"),
                      .what = say("the parallel arm's ", subject, " differ from the single-rank model"),
                      .got = say(*max_abs, " (", *max_rel, " of the largest element)",
                                 text(line, "worst").empty() ? "" : " in `" + text(line, "worst") + "`"),
                      .want = say(*bound, " at most: ", text(line, "why")),
                      .why = "the layout changes what the model computes"});
  } else if (*bound * *max_rel > widest * *max_abs) {
    judgement.defect({.rank = files.rank,
                      .step = integer(line, "step"),
                      .what = say("the bound on ", subject, " is too wide to see anything"),
                      .got = say("a bound of ", *bound * *max_rel / *max_abs, " of the largest element"),
                      .want = say(widest, " at most"),
                      .why = "reordered sums cannot explain more"});
  } else {
    judgement.saw(files.rank);
  }
}

}  // namespace

record::CheckResult layout_reference(const Attempt& attempt) {
  Judgement judgement("D53.layout_reference", attempt);
  if (!judgement.for_training_cases() || !judgement.for_parallel_cases()) return judgement.result("", "");
  const std::string precision = attempt.axes.text("precision");
  const double widest = precision == "bf16"   ? kWidestRelativeBoundBf16
                        : precision == "fp16" ? kWidestRelativeBoundFp16
                                              : kWidestRelativeBound;
  for (const RankFiles& files : attempt.ranks) {
    const auto lines = files.find("reference");
    for (const Line* line : lines) judge_line(judgement, files, *line, widest);
    for (const std::string_view subject : kSubjects) {
      // Only the last stage of a pipeline has losses.
      if (subject == "loss" && files.rank < attempt.context.world_size - attempt.context.world_size / attempt.axes.integer("pp")) continue;
      if (std::ranges::none_of(lines, [&](const Line* line) { return text(*line, "subject").starts_with(subject); }))
        judgement.absent(files, say("`reference` line of a subject beginning with ", subject));
    }
  }
  return judgement.result(say("losses and gradients within their bounds on ", attempt.ranks.size(), " ranks"),
                          "within the bound of reordered sums");
}

}  // namespace graphproof::checks

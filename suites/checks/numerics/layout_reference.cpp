// D53: the parallel eager arm computes what one rank computes alone. Eager and graph share a
// layout, so a defect of the layout shows nowhere else.
#include <algorithm>
#include <array>

#include "suites/checks/attempt/concat.h"
#include "suites/checks/attempt/detectors.h"
#include "suites/checks/attempt/distance.h"

namespace graphproof::checks {
namespace {

constexpr std::array<std::string_view, 2> kSubjects = {"loss",
                                                       "grad"};  // beginnings: losses, gradients

}  // namespace

record::CheckResult layout_reference(const Attempt& attempt) {
  Judgement judgement("D53.layout_reference", attempt);
  if (!judgement.for_training_cases() || !judgement.for_parallel_cases())
    return judgement.result("", "");
  const double widest = widest_bound(attempt.axes);
  for (const RankFiles& files : attempt.ranks) {
    const auto lines = files.find("reference");
    for (const Line* line : lines) {
      const std::string subject = text(*line, "subject");
      judge_distance(judgement, files, *line,
                     {.who = concat("the parallel arm's ", subject),
                      .what = "the single-rank model",
                      .bound_on = subject,
                      .why = "the layout changes what the model computes"},
                     widest);
    }
    for (const std::string_view subject : kSubjects) {
      // Only the last stage of a pipeline has losses.
      if (subject == "loss" &&
          files.rank <
              attempt.context.world_size - attempt.context.world_size / attempt.axes.integer("pp"))
        continue;
      if (std::ranges::none_of(
              lines, [&](const Line* line) { return text(*line, "subject").starts_with(subject); }))
        judgement.absent(files, concat("`reference` line of a subject beginning with ", subject));
    }
  }
  return judgement.result(
      concat("losses and gradients within their bounds on ", attempt.ranks.size(), " ranks"),
      "within the bound of reordered sums");
}

}  // namespace graphproof::checks

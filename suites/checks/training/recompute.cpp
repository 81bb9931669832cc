// D42: activations that the backward recomputes equal those of the forward, and they are recomputed
// as often as the case asks.
#include "suites/checks/attempt/arms.h"
#include "suites/checks/attempt/concat.h"
#include "suites/checks/attempt/judgement.h"

namespace graphproof::checks::d42 {
namespace {

using record::RecomputeLine;

/// The line of one part. Old evidence has a single part without a name.
const RecomputeLine* of_part(const std::vector<const RecomputeLine*>& lines,
                             const std::string& part) {
  for (const RecomputeLine* line : lines)
    if (line->part.value_or("core_attn") == part) return line;
  return nullptr;
}

/// Reports a layer that was not recomputed exactly once for each microbatch of the step, or whose
/// count is unknown.
void judge_counts(Judgement& judgement, const RankFiles& files, const RecomputeLine& line,
                  const RecomputedPart& part, const std::string& where) {
  const auto &before = line.counter_before, &after = line.counter_after;
  const auto layers = static_cast<std::size_t>(part.layers);
  if (before.empty() || before.size() != after.size() || before.size() != layers) {
    judgement.defect({.rank = files.rank,
                      .step = line.step,
                      .what = concat("the recompute counters of ", where, " are missing"),
                      .got = concat(shown(before), " and ", shown(after)),
                      .want = "a count for each layer, before and after",
                      .why = "a layer that is not counted may not have been recomputed"});
    return;
  }
  for (std::size_t layer = 0; layer < layers; ++layer) {
    const std::int64_t ran = after[layer] - before[layer];
    if (ran == judgement.expected().microbatches) continue;
    judgement.defect(
        {.rank = files.rank,
         .step = line.step,
         .what = concat(part.name, " of layer ", layer,
                        " was not recomputed once for each microbatch in ", where),
         .got = concat(ran, " times"),
         .want = concat(judgement.expected().microbatches, ", once for each microbatch"),
         .why =
             "a missing recompute uses activations of another step; one too many draws its random "
             "numbers again"});
    return;
  }
}

void judge_pair(Judgement& judgement, const RankFiles& files, const RecomputeLine& line,
                const std::string& where, const char* what, const std::string& want,
                const std::string& got, const char* why) {
  if (!want.empty() && want == got) return;
  judgement.defect({.rank = files.rank,
                    .step = line.step,
                    .what = concat("recompute had other ", what, " than the forward in ", where),
                    .got = concat("digest ", got.empty() ? "none" : got),
                    .want = concat("digest ", want.empty() ? "none" : want, ", as the forward"),
                    .why = why});
}

}  // namespace

/// In every step each recomputed part was recomputed once for each layer and microbatch, with the
/// same masks and outputs as in the forward.
record::CheckResult recompute(Judgement& judgement, const Attempt& attempt) {
  const Expected& expected = judgement.expected();
  const auto [arm, first, last] = WatchedSteps(expected);
  for (const RankFiles& files : attempt.ranks) {
    const std::vector<RecomputedPart> parts =
        recomputed_parts(attempt.axes, ends_of(attempt.axes, files.rank).last);
    for (std::int64_t step = first; step <= last; ++step) {
      const auto lines = judgement.find<RecomputeLine>(files, arm, step);
      for (const RecomputedPart& part : parts) {
        const RecomputeLine* line = of_part(lines, part.name);
        if (!line) {
          judgement.absent<RecomputeLine>(files, concat("of ", part.name, " of arm ", arm), step);
          continue;
        }
        const std::string where = concat("step ", step, " of arm ", arm);
        // Masks first: if they differ, so do the outputs, and the masks are the better diagnosis.
        if (part.draws && attempt.axes.flag("dropout"))
          judge_pair(
              judgement, files, *line, where, "masks", line->masks_digest, line->masks_again_digest,
              "if a recompute draws other random numbers than the forward, its gradients are "
              "those of another forward");
        judge_pair(judgement, files, *line, where, "outputs", line->outputs, line->outputs_again,
                   "the gradients are of a forward that was never run, while the loss looks right");
        judge_counts(judgement, files, *line, part, where);
        judgement.confirm(files.rank);
      }
    }
  }
  return judgement.result(
      concat("the forward's results again in ", last - first + 1, " steps on ",
             attempt.ranks.size(), " ranks"),
      "the forward's masks and outputs, once for each recomputed part, layer and microbatch");
}

}  // namespace graphproof::checks::d42

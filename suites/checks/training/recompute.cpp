// D42: activations that the backward recomputes equal those of the forward, and they are recomputed
// as often as the case asks, also inside graphs. A checkpoint that is a plain call while a graph is
// captured changes no number, so no comparison notices it.
#include "suites/checks/attempt/arms.h"
#include "suites/checks/attempt/concat.h"
#include "suites/checks/attempt/judgement.h"
#include "workloads/engine_traits/engine_traits.h"

namespace graphproof::checks::d42 {
namespace {

using record::RecomputeLine;
using record::RecomputesLine;

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

/// Reports an arm whose backward passes did not run every part again, inside captures or outside.
void judge_again(Judgement& judgement, const RankFiles& files, const RecomputesLine& line) {
  const bool in_graphs = line.captured_again != line.captured;
  if (!in_graphs && line.parts_again == line.parts) return;
  judgement.defect(
      {.rank = files.rank,
       .step = std::nullopt,
       .what = concat(in_graphs ? "the graphs" : "the eager work", " of arm ", line.arm,
                      " did not recompute every part that ran under a checkpoint"),
       .got = concat(in_graphs ? line.captured_again : line.parts_again, " of ",
                     in_graphs ? line.captured : line.parts, " parts run again"),
       .want = "all of them, by the backward pass",
       .why = "activations that recompute is to give up stay in memory, in that of the graphs for "
              "as long as they live; all results are right, so nothing else tells"});
}

/// Reports a graph arm that runs other parts under a checkpoint than eager steps do, which are
/// those of arm `eager`.
void judge_parts(Judgement& judgement, const RankFiles& files, const RecomputesLine& line,
                 const RecomputesLine& eager, bool whole_step) {
  // As many as eager steps have, without a fraction.
  const std::int64_t graph = line.captured * eager.eager_steps - eager.parts,
                     outside = line.parts * eager.eager_steps - eager.parts * line.eager_steps;
  // Other engines capture some parts, and run the others in replayed steps too.
  if (whole_step ? graph == 0 && outside == 0
                 : outside >= 0 && (line.captured + line.parts > 0 || eager.parts == 0))
    return;
  judgement.defect(
      {.rank = files.rank,
       .step = std::nullopt,
       .what = concat("arm ", line.arm, " ran other parts under a checkpoint than eager steps do"),
       .got = concat(line.captured, " parts in captures, and ", line.parts, " in ",
                     line.eager_steps, " eager steps"),
       .want = concat("those of arm ", eager.arm, ": ", eager.parts, " parts in ",
                      eager.eager_steps, " steps"),
       .why = "what runs without its checkpoint is not recomputed"});
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

/// In every arm the backward pass ran each part again that ran under a checkpoint, outside of
/// captures and inside. The graph of a whole step has as many such parts as an eager step, and so
/// have the eager steps of every graph arm.
record::CheckResult recompute_captured(Judgement& judgement, const Attempt& attempt) {
  const bool graphs = judgement.expected().graph;
  if (graphs && !judgement.has_replays()) return judgement.result("", "");
  const bool whole_step = engines::traits_of(attempt.axes.text("impl")).captures_whole_step();
  std::int64_t eager_parts = 0, captured = 0;
  for (const RankFiles& files : attempt.ranks) {
    const auto judged = [&](const char* arm) {
      const auto* line = judgement.first<RecomputesLine>(files, arm);
      if (line)
        judge_again(judgement, files, *line);
      else
        judgement.absent<RecomputesLine>(files, concat("of arm ", arm));
      return line;
    };
    const RecomputesLine* eager = judged("eager_a");
    judged("solo_eager");
    if (eager && eager->parts == 0)
      judgement.unexercised(
          concat("rank ", files.rank, " ran no part under a checkpoint in its eager steps"),
          "ask for parts that this model has; if it has them, its package leaves recompute out, or "
          "has a checkpoint that python/graphproof/recomputes.py is not told of");
    if (graphs) judged("lockstep_eager");
    for (const char* arm : graphs ? graph_arms(attempt) : std::vector<const char*>{}) {
      const RecomputesLine* line = judged(arm);
      if (line && eager) judge_parts(judgement, files, *line, *eager, whole_step);
      captured += line ? line->captured : 0;
    }
    eager_parts += eager ? eager->parts : 0;
    judgement.confirm(files.rank);
  }
  return judgement.result(concat(eager_parts, " parts of eager steps and ", captured,
                                 " of graphs run again on ", attempt.ranks.size(), " ranks"),
                          "every part under a checkpoint, in eager steps and in graphs");
}

}  // namespace graphproof::checks::d42

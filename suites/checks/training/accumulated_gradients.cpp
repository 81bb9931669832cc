// D11: the gradients of a step are the sum over its microbatches. If the losses of a replay equal
// those of the eager step, the forward is right, so gradients that differ were added up wrongly:
// overwritten, cleared between microbatches, or replaced by the graph's own buffer.
#include "suites/checks/attempt/concat.h"
#include "suites/checks/attempt/tolerance.h"

namespace graphproof::checks::d11 {

namespace {

using record::StepLine;

/// Whether the case states a tolerance for tensors of that class, and those of the step are within
/// it.
bool within(Judgement& judgement, const RankFiles& files, std::int64_t step,
            std::string_view tensor_class) {
  if (!tolerates(judgement.attempt(), tensor_class)) return false;
  for (const char* compared : {"lockstep", "capture_inputs_last"})
    for (const CompareLine* line : comparisons(judgement, files, compared))
      if (line->step == step)
        return line->equal || !beyond_tolerance(judgement, files, *line, tensor_class);
  return false;
}

}  // namespace

/// The gradient digests of the lockstep arms are equal in every replayed step whose losses are
/// equal; both within the tolerance that the case states. Unexercised from the first step on whose
/// losses differ, because the forward differs then.
record::CheckResult accumulated_gradients(Judgement& judgement, const Attempt& attempt) {
  if (!judgement.has_replays()) return judgement.result("", "");
  for (const RankFiles& files : attempt.ranks) {
    // Before the first replay both arms have the same parameters. After a defect they differ, and
    // later steps prove nothing.
    for (const std::int64_t step : judgement.expected().replayed_steps()) {
      const StepLine* eager = judgement.first<StepLine>(files, "lockstep_eager", step);
      const StepLine* graph = judgement.first<StepLine>(files, "lockstep_graph", step);
      if (!eager || !graph) {
        judgement.absent<StepLine>(files, "of both lockstep arms", step);
        continue;
      }
      const std::string &want = eager->digest.grads, &got = graph->digest.grads;
      if (want.empty() || got.empty()) {
        judgement.absent(files, "digest of the gradients in a `step` line", step);
        continue;
      }
      if (eager->loss_bits != graph->loss_bits && !within(judgement, files, step, "losses")) {
        judgement.unexercised(concat("the losses differ from step ", step,
                                     " on, so the gradients cannot be judged apart"));
        break;
      }
      if (got == want || within(judgement, files, step, "gradients")) {
        judgement.confirm(files.rank);
        continue;
      }
      judgement.defect(
          {.rank = files.rank,
           .step = step,
           .what =
               concat("the replay of step ", step, " added up its microbatches' gradients wrongly"),
           .got = concat("gradients ", got, " under equal losses"),
           .want =
               concat(want, ", the sum over ", judgement.expected().microbatches, " microbatches"),
           .why = "the optimizer uses only a part of the batch, while the loss looks right"});
      break;
    }
  }
  return judgement.result(
      concat("equal to eager's under equal losses on ", attempt.ranks.size(), " ranks"),
      "eager's sums");
}

}  // namespace graphproof::checks::d11

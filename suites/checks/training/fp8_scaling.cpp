// D70: with delayed scaling the scales of fp8 move on as often as they should. D01 notices scales
// that differ from eager's, but not a step whose arms all miss updates, nor work that is done too
// often.
#include "suites/checks/attempt/arms.h"
#include "suites/checks/attempt/concat.h"
#include "suites/checks/attempt/judgement.h"

namespace graphproof::checks::d70 {
namespace {

using record::Fp8ScalingLine;

/// "forward chunk 1" of the numbers of a line: first those of the forward passes.
std::string place(std::size_t index, std::size_t chunks) {
  return concat(index < chunks ? "forward" : "backward", " passes of chunk ", index % chunks);
}

/// Whether the numbers are the expected ones; reports the first that is not.
bool counted(Judgement& judgement, const RankFiles& files, const Fp8ScalingLine& line,
             const std::vector<std::int64_t>& got, const std::vector<std::int64_t>& want,
             std::string_view what, std::string_view too_few, std::string_view too_many) {
  if (got == want) return true;
  std::size_t i = 0;
  while (got[i] == want[i]) ++i;
  judgement.defect(
      {.rank = files.rank,
       .step = line.step,
       .what = concat("the ", place(i, want.size() / 2), " had another number of ", what,
                      " of fp8 in step ", line.step, " of arm ", line.arm),
       .got = concat(got[i]),
       .want = concat(want[i], want[i] == 0 ? ": no layer of the chunk multiplies in fp8"
                                            : ", one on leaving the context of each microbatch"),
       .why = std::string(got[i] < want[i] ? too_few : too_many)});
  return false;
}

}  // namespace

/// In every step each chunk with fp8 updated its scales once for each microbatch's forward and once
/// for its backward, after one reduction over the ranks each, and all ranks of a stage then have
/// the same scales and histories.
record::CheckResult fp8_scaling(Judgement& judgement, const Attempt& attempt) {
  const Expected& expected = judgement.expected();
  const std::int64_t stage_ranks = attempt.context.world_size / attempt.axes.integer("pp");
  const auto [arm, first, last] = WatchedSteps(expected);
  for (std::int64_t step = first; step <= last; ++step) {
    const Fp8ScalingLine* of_stage = nullptr;
    for (const RankFiles& files : attempt.ranks) {
      const std::int64_t stage = files.rank / stage_ranks;
      if (files.rank % stage_ranks == 0) of_stage = nullptr;
      const std::vector<std::int64_t> want = fp8_updates(attempt.axes, stage);
      const auto* line = judgement.first<Fp8ScalingLine>(files, arm, step);
      if (!line || line->updates.size() != want.size() || line->reductions.size() != want.size()) {
        judgement.absent<Fp8ScalingLine>(
            files, concat("of ", want.size() / 2, " chunks of arm ", arm), step);
        continue;
      }
      if (!of_stage) of_stage = line;
      if (!counted(judgement, files, *line, line->updates, want, "updates",
                   "scales that stay behind their history let numbers overflow or vanish, or two "
                   "microbatches share an entry of the history",
                   "entries leave the history too early") ||
          !counted(judgement, files, *line, line->reductions, want, "reductions",
                   "ranks that do not hear of each other's largest elements scale differently",
                   "every graph waits for the other ranks for a result that one reduction after "
                   "all graphs has"))
        continue;
      if (line->scales == of_stage->scales) {
        judgement.confirm(files.rank);
        continue;
      }
      judgement.defect({.rank = files.rank,
                        .step = step,
                        .what = concat("the scales of fp8 of arm ", arm,
                                       " differ between ranks of a stage after step ", step),
                        .got = concat("digest ", line->scales),
                        .want = concat(of_stage->scales, ", as the first rank of the stage has"),
                        .why = "tensors that are cut over ranks, and copies of one weight, would "
                               "be rounded differently by each"});
    }
  }
  return judgement.result(concat("one reduction and update for each microbatch in ",
                                 last - first + 1, " steps on ", attempt.ranks.size(), " ranks"),
                          "one for each forward and backward of a microbatch");
}

}  // namespace graphproof::checks::d70

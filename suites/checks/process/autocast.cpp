// D86: autocast cast the operands of products, and its cache kept the casts. A case whose arms all
// compute in fp32 has equal arms, so no comparison notices it, and neither does it notice a cache
// that keeps nothing.
#include "suites/checks/attempt/arms.h"
#include "suites/checks/attempt/concat.h"
#include "suites/checks/attempt/judgement.h"
#include "workloads/engine_traits/engine_traits.h"

namespace graphproof::checks::d86 {
namespace {

using record::ProductsLine;

/// What a step of a stage casts.
struct Casts {
  LinearLayers layers;
  std::int64_t microbatches = 1;
  bool cache = false;
  /// Whether nothing else is cast: a vision encoder has more weights, experts without a capacity
  /// are multiplied one by one, and a recomputed part casts its weights again.
  bool exact_parameters = true, exact_uses = true, once = true;
};

Casts casts_of(const Axes& axes, std::int64_t stage) {
  const bool one_by_one =
      axes.text("dispatch") != "none" && axes.text("dispatch") != "drop_and_pad";
  const bool encoder = axes.text("model") == "vlm";
  const bool once = axes.text("recompute") == "none";
  return {.layers = linear_layers(axes, stage),
          .microbatches = axes.integer("microbatches"),
          .cache = axes.flag("autocast_cache"),
          .exact_parameters = !encoder,
          .exact_uses = !encoder && !one_by_one && once,
          .once = once};
}

/// Whether the products of a step, or of a capture, are in 16 bits. Reports a defect if not.
bool in_16_bits(Judgement& judgement, const RankFiles& files, const ProductsLine& line) {
  if (line.in_16_bits > 0 && line.in_32_bits == 0) return true;
  judgement.defect(
      {.rank = files.rank,
       .step = line.step,
       .what = concat("step ", line.step, " of arm ", line.arm,
                      line.in_16_bits == 0 ? " has no matrix product in 16 bits"
                                           : " has matrix products that autocast did not cast"),
       .got = concat(line.in_16_bits, " in 16 bits, ", line.in_32_bits, " in 32 bits"),
       .want = "all in 16 bits",
       .why = "the result would be recorded for an autocast that was not in effect"});
  return false;
}

/// Whether parameters were cast as often as they should. Reports a defect if not.
bool cast_as_often(Judgement& judgement, const RankFiles& files, const ProductsLine& line,
                   const Casts& casts) {
  const auto defect = [&](std::string what, std::int64_t got, std::string want, std::string why) {
    judgement.defect({.rank = files.rank,
                      .step = line.step,
                      .what = concat("step ", line.step, " of arm ", line.arm, " ", what),
                      .got = concat(got),
                      .want = std::move(want),
                      .why = std::move(why)});
    return false;
  };
  const std::int64_t weights = casts.layers.weights;
  if (casts.exact_parameters ? line.parameters != weights : line.parameters < weights)
    return defect("cast another number of parameters", line.parameters,
                  concat(casts.exact_parameters ? "" : "at least ", weights,
                         ", the weights of the linear layers"),
                  "a layer multiplies by something else than its cast weight");
  if (casts.cache && casts.once) {
    const std::int64_t kept = line.parameters * casts.microbatches;
    if (line.casts == kept) return true;
    return defect("did not cast every parameter once in the region of each microbatch", line.casts,
                  concat(kept, " casts, of ", line.parameters, " parameters in ",
                         casts.microbatches, " microbatches"),
                  line.casts > kept ? "the cache kept nothing, so weights are cast for every use"
                                    : "the cache kept a cast beyond its region");
  }
  const std::int64_t used = (casts.cache ? weights : casts.layers.uses) * casts.microbatches;
  if (casts.exact_uses ? line.casts == used : line.casts >= used) return true;
  return defect(casts.cache ? "cast parameters too seldom for its regions"
                            : "did not cast parameters for every use",
                line.casts, concat(casts.exact_uses ? "" : "at least ", used, " casts"),
                line.casts < used ? "a cast was kept beyond the region or the use that it was for"
                                  : "weights are cast more often than products need them");
}

}  // namespace

/// Every eager step, and the warm-up and capture of arm lockstep_graph, multiply in 16 bits alone.
/// Eager steps, and captures of whole passes, cast every weight once for each use, or with a cache
/// once in the region of each microbatch. Parts that are captured alone run more than once.
record::CheckResult autocast(Judgement& judgement, const Attempt& attempt) {
  const Expected& expected = judgement.expected();
  const std::int64_t stage_ranks = attempt.context.world_size / attempt.axes.integer("pp");
  const bool parts = engines::traits_of(attempt.axes.text("impl")).captures_modules();
  for (const RankFiles& files : attempt.ranks) {
    const Casts casts = casts_of(attempt.axes, files.rank / stage_ranks);
    // A step of a stage whose layers are all in graphs calls no product once they are captured.
    const auto replays_alone = [&](const ProductsLine& line) {
      return parts && line.arm == "lockstep_graph" && line.step > expected.capture_step &&
             line.in_16_bits == 0 && line.in_32_bits == 0;
    };
    const auto judge = [&](std::string_view arm, std::int64_t last, bool counted) {
      for (std::int64_t step = 0; step <= last; ++step) {
        const auto* line = judgement.first<ProductsLine>(files, arm, step);
        if (!line)
          judgement.absent<ProductsLine>(files, concat("of arm ", arm), step);
        else if (replays_alone(*line) ||
                 (in_16_bits(judgement, files, *line) &&
                  (!counted || cast_as_often(judgement, files, *line, casts))))
          judgement.confirm(files.rank);
      }
    };
    judge("eager_a", expected.steps - 1, true);
    if (expected.graph) judge("lockstep_graph", expected.first_replay, !parts);
  }
  return judgement.result(concat("all products in 16 bits on ", attempt.ranks.size(), " ranks"),
                          "products in 16 bits, and one cast of a weight for each use or region");
}

}  // namespace graphproof::checks::d86

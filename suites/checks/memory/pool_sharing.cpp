// D31: the graphs of an arm share graph pools as axis pool asks.
#include <map>
#include <string>

#include "suites/checks/attempt/arms.h"
#include "suites/checks/attempt/concat.h"
#include "suites/checks/attempt/judgement.h"

namespace graphproof::checks::d31 {

/// No arm uses more graph pools than axis pool allows.
record::CheckResult pool_sharing(Judgement& judgement, const Attempt& attempt) {
  if (!judgement.has_replays()) return judgement.result("", "");
  const std::string asked = attempt.axes.text("pool");
  const std::int64_t for_training = asked == "single" ? 1 : judgement.expected().microbatches;
  for (const RankFiles& files : attempt.ranks) {
    for (const record::CaptureLine& capture : judgement.lines<record::CaptureLine>(files)) {
      const std::int64_t pools = capture.pools.value_or(0);
      // The evaluation has a pool of its own, because its graph is launched between steps, in no
      // fixed order with theirs.
      const std::int64_t allowed = for_training + (capture.graph == "validation" ? 1 : 0);
      if (pools >= 1 && pools <= allowed) {
        judgement.confirm(files.rank);
        continue;
      }
      judgement.defect(
          {.rank = files.rank,
           .step = std::nullopt,
           .what = concat("the graphs of arm ", capture.arm, " do not share their memory"),
           .got = concat(shown(capture.pools), " pools at the capture of ", capture.graph, ", ",
                         capture.pool_bytes, " bytes in this one"),
           .want = concat(allowed, " at most, by axis pool: ", asked),
           .why = "each pool holds the temporaries of the largest step, so several pools need a "
                  "multiple of the memory"});
    }
  }
  return judgement.result(
      concat(for_training, " pool at most in every arm on ", attempt.ranks.size(), " ranks"),
      concat("pool ", asked));
}

/// With pool per_graph the k-th graph of every arm that trains is captured into its k-th pool; axis
/// pool is not about the graphs of inference, which reuse the memory of the largest one. Real
/// packages are not asked: one call of torch.cuda.make_graphed_callables gives its graphs one pool.
record::CheckResult pools_apart(Judgement& judgement, const Attempt& attempt) {
  if (!judgement.has_replays()) return judgement.result("", "");
  for (const RankFiles& files : attempt.ranks) {
    std::map<std::string, std::int64_t> captured;  // graphs so far, by arm
    for (const record::CaptureLine& capture : judgement.lines<record::CaptureLine>(files)) {
      if (rolls_out(capture.arm)) continue;
      const std::int64_t graphs = ++captured[capture.arm];
      if (capture.pools == graphs) {
        judgement.confirm(files.rank);
        continue;
      }
      judgement.defect(
          {.rank = files.rank,
           .step = std::nullopt,
           .what = concat("the graphs of arm ", capture.arm, " share their memory"),
           .got = concat(shown(capture.pools), " pools at the capture of ", capture.graph,
                         ", graph ", graphs, " of the arm"),
           .want = concat(graphs, ", by axis pool: per_graph"),
           .why =
               "graphs that share a pool must run in the order of their capture, so whoever asks "
               "for pools of their own may run them in another"});
    }
  }
  return judgement.result(
      concat("a pool for each graph of every arm on ", attempt.ranks.size(), " ranks"),
      "pool per_graph");
}

}  // namespace graphproof::checks::d31

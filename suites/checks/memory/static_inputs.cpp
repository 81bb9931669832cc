// D31: graphs of a pipeline's microbatches share static inputs, as many as are in use at one time.
#include <algorithm>
#include <map>
#include <set>
#include <span>
#include <string_view>
#include <vector>

#include "suites/checks/attempt/concat.h"
#include "suites/checks/attempt/judgement.h"
#include "workloads/pipeline/pipeline_order.h"

namespace graphproof::checks::d31 {
namespace {

/// The static inputs of the graphs that an arm captured together.
struct Inputs {
  std::set<std::string_view> graphs;
  std::int64_t all = 0;
  std::set<std::string_view> addresses;
};

/// The static inputs by arm. An arm that captures its graphs again, as a long job does, has
/// several: the addresses of destroyed inputs may be given out again.
std::map<std::string_view, std::vector<Inputs>> inputs_by_arm(
    std::span<const record::CaptureLine> captures) {
  std::map<std::string_view, std::vector<Inputs>> arms;
  for (const record::CaptureLine& capture : captures) {
    if (!capture.owned_inputs) continue;
    std::vector<Inputs>& sets = arms[capture.arm];
    if (sets.empty() || sets.back().graphs.contains(capture.graph)) sets.emplace_back();
    Inputs& inputs = sets.back();
    inputs.graphs.insert(capture.graph);
    inputs.all += std::ssize(*capture.owned_inputs);
    inputs.addresses.insert(capture.owned_inputs->begin(), capture.owned_inputs->end());
  }
  return arms;
}

/// The largest number of forwards of a chunk whose backwards have not run yet.
std::int64_t most_in_use(const order::Stage& stage) {
  std::int64_t in_use = 0, most = 0;
  for (const double entry : order::chunk_order(stage)) {
    in_use += entry > 0 ? 1 : -1;
    most = std::max(most, in_use);
  }
  return most;
}

}  // namespace

/// A forward of a chunk uses static inputs until its backward has run, and lends them to a later
/// forward then. So the graphs of an arm have as large a share of their static inputs at different
/// addresses as is in use at one time in the order of the stage. In the 1F1B order without virtual
/// stages these are as many microbatches as there are stages from it to the last one. All chunks
/// have layers with the same inputs.
record::CheckResult static_inputs(Judgement& judgement, const Attempt& attempt) {
  if (!judgement.has_replays()) return judgement.result("", "");
  const std::int64_t stages = attempt.axes.integer("pp"), chunks = attempt.axes.integer("vpp"),
                     microbatches = judgement.expected().microbatches,
                     stage_ranks = attempt.context.world_size / stages;
  for (const RankFiles& files : attempt.ranks) {
    const std::int64_t forwards = chunks * microbatches,
                       in_use = most_in_use({.pp = stages,
                                             .rank = files.rank / stage_ranks,
                                             .chunks = chunks,
                                             .microbatches = microbatches,
                                             .group = attempt.axes.integer("microbatch_group")});
    const auto arms = inputs_by_arm(judgement.lines<record::CaptureLine>(files));
    if (arms.empty()) judgement.absent(files, "static inputs in a `capture` line");
    for (const auto& [arm, sets] : arms)
      for (const Inputs& inputs : sets) {
        const std::int64_t different = std::ssize(inputs.addresses);
        if (different * forwards == inputs.all * in_use) {
          judgement.confirm(files.rank);
          continue;
        }
        judgement.defect(
            {.rank = files.rank,
             .step = std::nullopt,
             .what = concat("the graphs of arm ", arm, " do not share their static inputs"),
             .got = concat(different, " addresses for ", inputs.all, " static inputs"),
             .want = concat(inputs.all * in_use / forwards, ": those of ", in_use, " of ", forwards,
                            " forward passes of a chunk are in use at one time"),
             .why =
                 "more hold memory that no step needs; fewer are overwritten before their backward "
                 "has read them"});
      }
  }
  return judgement.result(concat("as many as are in use on ", attempt.ranks.size(), " ranks"),
                          "static inputs for the forward passes that are in use at one time");
}

}  // namespace graphproof::checks::d31

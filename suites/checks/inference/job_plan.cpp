#include "suites/checks/inference/job_plan.h"

namespace graphproof::checks {
namespace {

bool has_rollouts(const Axes& axes) { return axes.text("schedule") == "train-rollout-train"; }

}  // namespace

requests::Settings job_settings(const Axes& axes) {
  const std::int64_t most = axes.integer("microbatch_size");
  return {.slots = most,
          .length = axes.integer("seq_length"),
          .steps = has_rollouts(axes) ? requests::rollout_steps(axes.integer("seq_length"))
                                      : axes.integer("steps"),
          .chunk = axes.integer("prefill_chunk"),
          .blocks = axes.integer("cache_blocks"),
          .ranks = axes.integer("dp"),
          .sizes = requests::batch_sizes(axes.words("batch_sizes"), most)};
}

std::vector<InferenceArm> inference_arms(const Axes& axes, bool graphs) {
  if (!graphs) return {{"eager_a", false}, {"eager_b", false}, {"padded_eager", false}};
  if (has_rollouts(axes))
    return {{"lockstep_eager_rollout", false}, {"lockstep_graph_rollout", true}};
  return {{"lockstep_eager", false},
          {"lockstep_graph", true},
          {"graph_b", true},
          {"free_eager", false, false},
          {"free_graph", true, false}};
}

const char* arm_of_sequences(const Axes& axes) {
  return has_rollouts(axes) ? "lockstep_eager_rollout" : "eager_a";
}

std::vector<std::vector<requests::Step>> job_plan(const Axes& axes) {
  return requests::plan(job_settings(axes));
}

std::size_t replica_of(const Axes& axes, int rank) {
  return static_cast<std::size_t>(rank / axes.integer("tp") % axes.integer("dp"));
}

requests::Ended ended_requests(const Axes& axes, std::size_t replica) {
  const requests::Settings settings = job_settings(axes);
  return requests::ended(settings, static_cast<std::int64_t>(replica),
                         requests::plan(settings).at(replica));
}

std::string work_word(requests::Work work) {
  return work == requests::Work::idle      ? "idle"
         : work == requests::Work::prefill ? "prefill"
                                           : "decode";
}

std::int64_t graphs_of_job(const Axes& axes) {
  const std::string scope = axes.text("inference_scope");
  if (scope == "none") return 0;
  const requests::Settings settings = job_settings(axes);
  return (scope == "layer" ? axes.integer("layers") : 1) *
         (std::ssize(settings.sizes) + (settings.chunk > 0 ? 1 : 0));
}

std::int64_t launches_of(const Axes& axes, const requests::Step& step) {
  const std::string scope = axes.text("inference_scope");
  if (!step.graph || scope == "none") return 0;
  return scope == "layer" ? axes.integer("layers") : 1;
}

}  // namespace graphproof::checks

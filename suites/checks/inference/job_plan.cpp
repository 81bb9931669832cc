#include "suites/checks/inference/job_plan.h"

namespace graphproof::checks {

requests::Settings job_settings(const Axes& axes) {
  const std::int64_t most = axes.integer("microbatch_size");
  return {.slots = most,
          .length = axes.integer("seq_length"),
          .steps = axes.integer("steps"),
          .chunk = axes.integer("prefill_chunk"),
          .blocks = axes.integer("cache_blocks"),
          .ranks = axes.integer("dp"),
          .sizes = requests::batch_sizes(axes.words("batch_sizes"), most)};
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

std::int64_t launches_of(const Axes& axes, const requests::Step& step) {
  const std::string scope = axes.text("inference_scope");
  if (!step.graph || scope == "none") return 0;
  return scope == "layer" ? axes.integer("layers") : 1;
}

}  // namespace graphproof::checks

#include "suites/arms/infinity.h"

#include <array>
#include <limits>
#include <set>
#include <string>

#include "fixtures/inspect/tensor_digest.h"
#include "fixtures/tensors/torch.h"
#include "suites/case/learning_rate.h"
#include "workloads/faults/plant.h"

namespace graphproof::suites {
namespace {

/// What distinguishes the ranks that hold different gradients: stage, part, owner.
using Holder = std::array<int, 3>;

/// The holder of a gradient of the dense model, or of an expert, that world rank `rank` holds
/// (process_groups.h has the order of ranks).
Holder holder(const StepConfig& config, int rank, bool experts) {
  const workloads::Layout& layout = config.layout;
  const int stage = rank / layout.stage_ranks(), place = rank % layout.stage_ranks();
  const int parts = experts ? layout.ep * layout.etp : layout.tp;
  const int owner = config.model.distributed_optimizer ? place / parts : 0;
  return {stage, place % parts, owner};
}

/// Sets the first gradient of the kind to infinity. Whether this rank has one.
bool make_infinite(workloads::TrainStep& step, bool experts) {
  for (const workloads::Updated& one : step.updated())
    if (one.expert == experts && one.gradient.numel() > 0) {
      at::Tensor(one.gradient)
          .view({-1})
          .select(0, 0)
          .fill_(std::numeric_limits<double>::infinity());
      return true;
    }
  return false;
}

class Infinities {
 public:
  explicit Infinities(const CaseParts& parts)
      : parts_(parts),
        step_(parts.config.model, parts.config.layout, parts.device, parts.config.seed,
              faults::plant(parts.config.fault), parts.config.rng_backend) {
    step_.learning_rate(learning_rate_schedule(parts.config.model.optimizer).at(0));
  }

  void run() {
    run("none", 0, false);
    const workloads::Layout& layout = parts_.config.layout;
    for (const bool experts : {false, true}) {
      if (experts && parts_.config.model.experts == 0) continue;
      std::set<Holder> done;
      for (int rank = 0; rank < layout.stage_ranks() * layout.pp; ++rank)
        if (done.insert(holder(parts_.config, rank, experts)).second)
          run(experts ? "experts" : "dense", rank,
              holder(parts_.config, rank, experts) ==
                  holder(parts_.config, world_rank(layout), experts));
    }
  }

 private:
  void run(const std::string& part, int victim, bool mine) {
    for (const fixtures::NamedTensor& gradient : step_.gradients())
      at::Tensor(gradient.tensor).zero_();
    const bool infinite = mine && make_infinite(step_, part == "experts");
    const std::string before = fixtures::digest(step_.parameters());
    step_.optimizer_step();
    parts_.device.synchronize(parts_.stream);
    parts_.scope.write(
        record::InfinityLine{.part = part,
                             .victim = victim,
                             .infinite = infinite,
                             .skipped = step_.skipped().item<bool>(),
                             .moved = fixtures::digest(step_.parameters()) != before});
  }

  const CaseParts& parts_;
  workloads::TrainStep step_;
};

}  // namespace

void run_infinities(const CaseParts& parts) {
  const c10::StreamGuard guard(parts.stream);
  parts.scope.enter(Phase::eager, "infinity", 0);
  Infinities(parts).run();
}

}  // namespace graphproof::suites

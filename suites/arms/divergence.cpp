#include "suites/arms/divergence.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>

#include "fixtures/inspect/tensor_comparison.h"
#include "fixtures/tensors/torch.h"
#include "suites/arms/taps.h"
#include "suites/case/arm_lines.h"
#include "suites/case/learning_rate.h"
#include "workloads/faults/plant.h"

namespace graphproof::suites {
namespace {

constexpr const char* kEagerArm = "divergence_eager";
constexpr const char* kGraphArm = "divergence_graph";

/// An arm whose operators are recorded.
class TappedArm {
 public:
  TappedArm(const CaseParts& parts, const std::string& impl)
      : parts_(parts),
        guard_(parts.stream),
        step_(parts.config.model, parts.config.layout, parts.device, parts.config.seed,
              faults::plant(parts.config.fault), parts.config.rng_backend),
        taps_(parts.device, step_) {
    engines::EngineConfig config = parts.config.engine;
    config.impl = impl;
    engine_ = engines::make_engine(config, parts.device, parts.stream, step_, &taps_);
    taps_.surround(*engine_);
  }

  void run(std::int64_t index, const StepInput& input) {
    const Taps::Step recorded(taps_);
    engine_->step(input.batch, learning_rate_schedule(parts_.config.model.optimizer).at(index));
    parts_.device.synchronize(parts_.stream);
  }
  bool replayed() const { return engine_->counters().replays > 0; }
  void drop_graphs() { engine_->drop_graphs(); }
  Taps& taps() { return taps_; }

 private:
  const CaseParts& parts_;
  c10::StreamGuard guard_;
  workloads::TrainStep step_;
  Taps taps_;
  std::unique_ptr<engines::Engine> engine_;
};

/// The first difference of a step. `why` is set if the graph lacks the operator.
struct Difference {
  TapPlace place;
  std::string op, why;
  std::optional<record::TensorMismatch> mismatch;
};

struct StepComparison {
  std::size_t compared = 0;  // results of both arms up to the difference
  std::optional<Difference> difference;
};

/// Finds the first of eager's results, in execution order, that has other bytes in the graph arm.
/// If `whole`, one graph holds all of eager's operators, so a result that the graph arm lacks is a
/// difference too.
StepComparison compare_step(const Taps& eager, const Taps& graph, bool whole) {
  std::map<TapPlace, const Tap*> ours, theirs;
  for (const Tap& tap : eager.taps()) ours[tap.place] = &tap;
  for (const Tap& tap : graph.taps()) theirs[tap.place] = &tap;
  StepComparison step;
  for (const Tap& tap : eager.taps()) {
    if (ours.at(tap.place) != &tap) continue;  // a later tap has the final bytes
    const auto other = theirs.find(tap.place);
    if (other == theirs.end()) {
      if (!whole || tap.place.direction.empty()) continue;
      step.difference = Difference{
          tap.place, tap.op, "the graph has no such operator: it was not captured", std::nullopt};
      return step;
    }
    const at::Tensor& value = other->second->value;
    if (value.sizes() != tap.value.sizes() || value.scalar_type() != tap.value.scalar_type())
      continue;
    ++step.compared;
    const fixtures::Comparison comparison =
        fixtures::compare({{tap.place.what, tap.value}}, {{tap.place.what, value}});
    if (!comparison.mismatch) continue;
    step.difference = Difference{tap.place, tap.op, "", mismatch_of(*comparison.mismatch)};
    return step;
  }
  return step;
}

record::DivergenceLine line_of(std::int64_t step, const StepComparison& found,
                               const std::string& why) {
  const Difference difference = found.difference.value_or(Difference{{}, "", why, std::nullopt});
  return {.left = kEagerArm,
          .right = kGraphArm,
          .step = step,
          .found = found.difference.has_value(),
          .microbatch = difference.place.microbatch,
          .layer = difference.place.layer,
          .module = difference.place.module,
          .direction = difference.place.direction,
          .op = difference.op,
          .taps = static_cast<std::int64_t>(found.compared),
          .mismatch = difference.mismatch,
          .why = difference.why};
}

}  // namespace

void locate_divergence(const CaseParts& parts, const std::vector<StepInput>& inputs) {
  CaseScope& scope = parts.scope;
  std::unique_ptr<TappedArm> eager, graph;
  scope.section(Phase::build, [&] {
    scope.enter(Phase::build, kEagerArm, 0);
    eager = std::make_unique<TappedArm>(parts, "none");
    graph = std::make_unique<TappedArm>(parts, parts.config.engine.impl);
  });
  const bool one_graph = parts.config.traits().captures_whole_step();
  const auto last = static_cast<std::int64_t>(inputs.size()) - 1;
  StepComparison found;
  for (std::int64_t index = 0; index <= last; ++index) {
    const StepInput& input = inputs[static_cast<std::size_t>(index)];
    scope.section(Phase::replay, [&] {
      scope.enter(Phase::eager, kEagerArm, index);
      eager->run(index, input);
      if (index == 0) graph->taps().reserve(eager->taps().taps());
      scope.enter(index < parts.config.first_replay() ? Phase::warmup : Phase::replay, kGraphArm,
                  index);
      graph->run(index, input);
      const bool truncated = eager->taps().truncated() || graph->taps().truncated();
      found =
          compare_step(eager->taps(), graph->taps(), one_graph && graph->replayed() && !truncated);
    });
    const std::vector<int> seen = scope.gather(found.difference ? 1 : 0);
    const auto first = std::find(seen.begin(), seen.end(), 1);
    if (first == seen.end() && index < last) continue;
    const bool truncated = eager->taps().truncated() || graph->taps().truncated();
    scope.write(line_of(
        index, found,
        first != seen.end() ? "every operator of this rank agrees; rank " +
                                  std::to_string(first - seen.begin()) + " differs"
        : truncated ? "every recorded operator agrees, and there was no room to record all of them"
                    : "every operator agrees when the arms run again with taps: a race, or memory "
                      "whose addresses the taps have changed"));
    break;
  }
  scope.section(Phase::teardown_graph, [&] {
    scope.enter(Phase::teardown_graph, kGraphArm, 0);
    graph->drop_graphs();
  });
}

}  // namespace graphproof::suites

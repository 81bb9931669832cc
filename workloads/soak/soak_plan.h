// The plan of a long job (axis soak_steps): which of its steps evaluate, save, load and are
// measured. Pure, so that ranks and judge make it from the axis alone.
#pragma once

#include <cstdint>
#include <vector>

namespace graphproof::soak {

/// A job has this many cycles. In each one, graphs are captured, replayed and destroyed. A trend
/// over recaptures needs a point for each of several cycles, and the longer a cycle is, the more
/// replays one graph has.
inline constexpr std::int64_t kCycles = 10;
/// Memory and handles are read as often in a cycle. 54 points of the nine judged cycles bring the
/// interval of their trend close to its slope.
inline constexpr std::int64_t kSamples = 6;
/// The first cycles that set things up, so that their memory is not judged.
inline constexpr std::int64_t kSettlingCycles = 1;

/// Steps are numbered through all cycles, from 0; a place is a step within its cycle.
///
/// A cycle begins with new graphs: their warm-up, capture and replays. Before place saved() it
/// evaluates and saves a checkpoint, and before place loaded() it loads this checkpoint under its
/// live graphs, as a job does after a spike of its loss. In its second half it is measured. After
/// its last step its results are compared, and its graphs are destroyed.
class Plan {
 public:
  explicit Plan(std::int64_t soak_steps) : cycle_steps_(soak_steps / kCycles) {}

  std::int64_t cycle_steps() const { return cycle_steps_; }
  std::int64_t steps() const { return kCycles * cycle_steps_; }
  std::int64_t saved() const { return cycle_steps_ / 4; }
  std::int64_t loaded() const { return cycle_steps_ / 2; }
  /// The place after which sample `number` is read; the last one is the end of the cycle.
  std::int64_t sample(std::int64_t number) const {
    const std::int64_t measured = cycle_steps_ - loaded();
    return loaded() + measured * (number + 1) / kSamples - 1;
  }
  bool sampled(std::int64_t place) const {
    for (std::int64_t number = 0; number < kSamples; ++number)
      if (sample(number) == place) return true;
    return false;
  }
  /// The steps whose samples are judged, ascending; kSamples of each cycle.
  std::vector<std::int64_t> judged_steps() const {
    std::vector<std::int64_t> steps;
    for (std::int64_t cycle = kSettlingCycles; cycle < kCycles; ++cycle)
      for (std::int64_t number = 0; number < kSamples; ++number)
        steps.push_back(cycle * cycle_steps_ + sample(number));
    return steps;
  }
  std::int64_t last_step(std::int64_t cycle) const { return (cycle + 1) * cycle_steps_ - 1; }

 private:
  std::int64_t cycle_steps_;
};

}  // namespace graphproof::soak

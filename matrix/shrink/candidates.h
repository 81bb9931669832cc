// The possible causes of one failure and their probabilities. A candidate is a set of up to four
// values of the failing row, and rows that passed or failed change its probability by Bayes' rule.
// A set of axes is a mask. A row is the mask of the axes in which it equals the failing row; it
// triggers a candidate if it has all of the candidate's bits.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace graphproof::shrink {

/// A set of axes, one bit each.
using Mask = std::uint64_t;
constexpr int kMostBits = 64;
// The most values of a candidate. 64 axes have 679,120 sets of four or fewer.
constexpr int kMostValues = 4;

/// How outcomes mislead: the probability that a job that triggers the fault passes, and that a job
/// that does not trigger it fails.
struct Noise {
  double pass_triggered = 0, fail_otherwise = 0;
};

/// A hypothesis about the noise, and its probability before anything is known.
struct Belief {
  Noise noise;
  double prior = 1;
};
constexpr std::size_t kMostBeliefs = 6;

/// A candidate's probability under each belief.
struct Likely {
  Mask mask = 0;
  std::array<double, kMostBeliefs> by_belief{};
  double probability() const;
};

/// All candidates, with a probability under each belief.
class Candidates {
 public:
  /// The candidates are the sets of one to four of `bits` bits, the empty set (every row fails) and
  /// the set of all bits (the failure takes more than four values). REQUIRES: 1 to kMostBits bits,
  /// 1 to kMostBeliefs beliefs.
  Candidates(int bits, std::vector<Belief> beliefs);

  Mask whole() const { return whole_; }
  std::span<const Belief> beliefs() const { return beliefs_; }

  /// Updates the probabilities by the outcome of a row.
  void learn(Mask row, bool failed);

  /// The most probable candidates, most probable first, then by mask: as many as together have
  /// `probability`, but at most `most`.
  std::vector<Likely> likely(double probability, std::size_t most) const;
  /// Every candidate that is a subset of `mask`, however improbable.
  std::vector<Likely> within(Mask mask) const;
  /// For each bit the probability that its axis is part of the cause.
  std::vector<double> share_of_bits() const;
  /// The probability of each belief now.
  std::vector<double> beliefs_now() const;

 private:
  std::size_t at(std::size_t candidate, std::size_t belief) const {
    return candidate * beliefs_.size() + belief;
  }
  Likely likely_at(std::size_t candidate) const;

  Mask whole_;
  std::vector<Belief> beliefs_;
  std::vector<Mask> masks_;
  std::vector<double> weights_;  // by candidate, then belief; their sum is 1
};

// The most rows of one call of information(), which goes through all combinations of their
// outcomes.
constexpr std::size_t kMostAtOnce = 8;

/// The information, in bits, that the outcomes of these rows together are expected to give about
/// which candidate is the cause. REQUIRES: 1 to kMostAtOnce rows; `likely` comes from candidates
/// with these beliefs.
double information(std::span<const Likely> likely, std::span<const Belief> beliefs,
                   std::span<const Mask> rows);

}  // namespace graphproof::shrink

// What may be the cause of one failure, and how likely each is: every set of up to four values of
// the failing row, judged by Bayes' rule against rows that passed and failed. A set of axes is a
// mask; a row is the mask of the axes in which it equals the failing row, so that a row triggers a
// candidate where it holds all of its bits.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace graphproof::shrink {

using Mask = std::uint64_t;
constexpr int kMostBits = 64;
constexpr int kMostValues =
    4;  // of one combination: of 64 axes there are 679,120 sets of four or fewer

/// How outcomes lie: a job that triggers the fault passes all the same, a job that does not fails
/// all the same.
struct Noise {
  double pass_triggered = 0, fail_otherwise = 0;
};

/// One belief about the noise and how much it is believed before anything is known.
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

class Candidates {
 public:
  /// REQUIRES: 1 to kMostBits bits, 1 to kMostBeliefs beliefs. Beside the sets of one to four bits
  /// there are the empty set (everything fails) and the set of all bits (it takes more than four
  /// values).
  Candidates(int bits, std::vector<Belief> beliefs);

  Mask whole() const { return whole_; }
  std::span<const Belief> beliefs() const { return beliefs_; }

  void learn(Mask row, bool failed);

  /// The most probable ones until together they have `probability`, at most `most`; largest first,
  /// then by mask.
  std::vector<Likely> likely(double probability, std::size_t most) const;
  /// Every candidate within `mask`, however improbable.
  std::vector<Likely> within(Mask mask) const;
  /// The probability that the axis is part of the cause, for each bit.
  std::vector<double> share_of_bits() const;
  /// How much each belief is believed now.
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

// Rows that one question to information() may hold: it looks at every combination of their
// outcomes.
constexpr std::size_t kMostAtOnce = 8;

/// What the outcomes of these rows together are expected to tell about which candidate it is, in
/// bits. REQUIRES: 1 to kMostAtOnce rows; `likely` comes from candidates with these beliefs.
double information(std::span<const Likely> likely, std::span<const Belief> beliefs,
                   std::span<const Mask> rows);

}  // namespace graphproof::shrink

// The source of weights and samples: numbers that depend only on (seed, name, index). They are the
// same on every rank, machine and layout, because they come from integer arithmetic and one exact
// conversion, without a library generator or libm.
#pragma once

#include <cstdint>
#include <string_view>

namespace graphproof::workloads {

/// A stream of random numbers with random access. Immutable.
class Draw {
 public:
  /// `name` is that of a tensor or sample, and never depends on the rank.
  Draw(std::uint64_t seed, std::string_view name);

  /// Number `index` of the stream: 64 random bits (SplitMix64 with a counter; Steele, Lea, Flood
  /// 2014).
  std::uint64_t bits(std::uint64_t index) const;
  /// Uniform in [-1, 1), a multiple of 2^-23 and therefore exact in fp32. Mean 0, standard
  /// deviation 1/sqrt(3).
  float uniform(std::uint64_t index) const;
  /// Uniform in 0 .. limit-1. The bias of the modulo is less than limit / 2^64.
  std::int64_t below(std::int64_t limit, std::uint64_t index) const;

 private:
  std::uint64_t key_;
};

}  // namespace graphproof::workloads

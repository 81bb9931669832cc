// Numbers that depend on nothing but (seed, name, index): the source of weights and samples. The
// same on every rank, machine and layout, because it is integer arithmetic and one exact
// conversion; no library generator and no libm function takes part.
#pragma once

#include <cstdint>
#include <string_view>

namespace graphproof::workloads {

class Draw {
 public:
  /// `name` is the tensor's or sample's, never a rank's.
  Draw(std::uint64_t seed, std::string_view name);

  /// 64 random bits; number `index` of the stream (SplitMix64, used as a counter: Steele, Lea,
  /// Flood 2014).
  std::uint64_t bits(std::uint64_t index) const;
  /// Uniform in [-1, 1), a multiple of 2^-23, so exact in fp32. Mean 0, standard deviation
  /// 1/sqrt(3).
  float uniform(std::uint64_t index) const;
  /// Uniform in 0 .. limit-1. The modulo favours small numbers by less than limit / 2^64.
  std::int64_t below(std::int64_t limit, std::uint64_t index) const;

 private:
  std::uint64_t key_;
};

}  // namespace graphproof::workloads

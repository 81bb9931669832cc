// What an arm left in each of its steps, kept in host memory for a later arm that has to leave the
// same.
#pragma once

#include <cstdint>
#include <vector>

#include "suites/arms/arm.h"

namespace graphproof::suites {

/// Whole while it is no more than `kept_bytes`, beside the two models themselves; from then on the
/// last step's bytes alone. The digests in `step` lines say of the others whether they were equal.
class History {
 public:
  static constexpr std::int64_t kKeptBytes = std::int64_t{256} << 20;

  explicit History(std::int64_t kept_bytes = kKeptBytes) : kept_bytes_(kept_bytes) {}
  void add(Snapshot left);
  /// Nothing where the bytes of `step` were let go of.
  const Snapshot* at(std::int64_t step) const;
  /// Of all steps; those that were let go of are empty.
  const std::vector<Snapshot>& steps() const { return steps_; }

 private:
  std::int64_t kept_bytes_, bytes_ = 0;
  std::vector<Snapshot> steps_;
};

}  // namespace graphproof::suites

// The results of an arm's steps in host memory, for a later arm that must repeat them.
#pragma once

#include <cstdint>
#include <vector>

#include "suites/arms/arm.h"

namespace graphproof::suites {

/// Keeps the results of all steps up to `kept_bytes`, and above that only those of the last step.
/// The digests in `step` lines still show whether the other steps were equal.
class History {
 public:
  static constexpr std::int64_t kKeptBytes = std::int64_t{256} << 20;

  explicit History(std::int64_t kept_bytes = kKeptBytes) : kept_bytes_(kept_bytes) {}
  void add(Snapshot left);
  /// The results of `step`; null if they were dropped.
  const Snapshot* at(std::int64_t step) const;
  /// The results of all steps; those that were dropped are empty.
  const std::vector<Snapshot>& steps() const { return steps_; }

 private:
  std::int64_t kept_bytes_, bytes_ = 0;
  std::vector<Snapshot> steps_;
};

}  // namespace graphproof::suites

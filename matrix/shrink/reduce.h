// Finds the smallest case that still fails, once it is known which values make it fail: everything
// else at its default, and fewer ranks, layers, steps and microbatches. The caller runs the cases,
// as with locate.h; a case that still fails is the start of the next one.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "matrix/case/case.h"
#include "matrix/shrink/locate.h"

namespace graphproof::shrink {

/// The axes whose value is a size. Those that multiply ranks come first, because ranks cost most.
const std::vector<std::string>& sizes();

/// Reduces one failing case.
class Reducer {
 public:
  /// `keep` has the axes of the combination; a size among them is only halved. A smaller case is
  /// given up after it passed `tries` times; one try suffices if failures are not a matter of
  /// chance. `allowed` tells whether this machine can run a case and no rule refuses it. REQUIRES:
  /// `axes` outlives this.
  Reducer(const matrix::AxisTable& axes, matrix::Case failing, std::set<std::string> keep,
          int tries, std::function<bool(const matrix::Case&)> allowed);

  /// The next case to run; nothing once none is left, or after kMostReductions jobs.
  std::optional<matrix::Case> next();
  /// Records the outcome of the case that next() returned last.
  void record(Outcome outcome);

  /// The smallest case that failed.
  const matrix::Case& smallest() const { return smallest_; }
  int jobs() const { return jobs_; }

 private:
  std::vector<matrix::Case> smaller() const;
  std::optional<std::int64_t> least_allowed(matrix::Case test_case, const std::string& size) const;
  matrix::Case with_sizes_at_minimum(matrix::Case test_case) const;

  const matrix::AxisTable& axes_;
  matrix::Case smallest_, asked_;
  std::set<std::string> keep_;
  int tries_, jobs_ = 0;
  std::function<bool(const matrix::Case&)> allowed_;
  std::map<std::string, int> passes_;  // of each case, by canonical text
};

constexpr int kMostReductions = 24;

}  // namespace graphproof::shrink

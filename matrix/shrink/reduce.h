// The smallest job that still fails, once it is known what makes it fail: everything else at its
// default, fewer ranks, layers, steps, microbatches. Pure and driven step by step, as locate.h;
// every step that still fails becomes the start of the next.
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

/// Axes whose value is the size of a job: ranks first, they cost most.
const std::vector<std::string>& sizes();

class Reducer {
 public:
  /// `allowed`: whether this machine can run the case and no rule refuses it. `keep`: axes of the
  /// combination; a size among them is made smaller only by halves. A case is given up after
  /// `tries` passes (one where failures are no matter of chance). `axes` outlives this.
  Reducer(const matrix::AxisTable& axes, matrix::Case failing, std::set<std::string> keep,
          int tries, std::function<bool(const matrix::Case&)> allowed);

  /// The next case to run; nothing once none is left, or kMostReductions jobs are spent.
  std::optional<matrix::Case> next();
  /// Of the case that next() gave last.
  void record(Outcome outcome);

  /// The smallest that failed.
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
  std::map<std::string, int> passes_;  // by canonical text
};

constexpr int kMostReductions = 24;

}  // namespace graphproof::shrink

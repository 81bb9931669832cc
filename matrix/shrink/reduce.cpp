#include "matrix/shrink/reduce.h"

#include <algorithm>

namespace graphproof::shrink {

const std::vector<std::string>& sizes() {
  static const std::vector<std::string> kSizes = {"dp",  "tp",           "pp",     "cp",   "ep",
                                                  "vpp", "microbatches", "layers", "steps"};
  return kSizes;
}

Reducer::Reducer(const matrix::AxisTable& axes, matrix::Case failing, std::set<std::string> keep,
                 int tries, std::function<bool(const matrix::Case&)> allowed)
    : axes_(axes),
      smallest_(std::move(failing)),
      keep_(std::move(keep)),
      tries_(tries),
      allowed_(std::move(allowed)) {
  keep_.insert("fault");
}

/// The least value of a size, below the one that the case has, that is allowed; nothing if there is
/// none.
std::optional<std::int64_t> Reducer::least_allowed(matrix::Case test_case,
                                                   const std::string& size) const {
  const std::int64_t now = matrix::integer_of(axes_, test_case, size);
  for (std::int64_t value = axes_.find(size)->minimum; value < now; ++value) {
    matrix::set_value(axes_, test_case, size, value);
    if (allowed_(test_case)) return value;
  }
  return std::nullopt;
}

matrix::Case Reducer::with_sizes_at_minimum(matrix::Case test_case) const {
  for (const std::string& size : sizes())
    if (!keep_.contains(size) && size != "steps")
      matrix::set_value(axes_, test_case, size, axes_.find(size)->minimum);
  // How few steps suffice depends on the engine and its warm-up.
  if (!keep_.contains("steps"))
    if (const auto steps = least_allowed(test_case, "steps"))
      matrix::set_value(axes_, test_case, "steps", *steps);
  return test_case;
}

/// Cases smaller than the smallest so far, those that change most first.
std::vector<matrix::Case> Reducer::smaller() const {
  const auto is_size = [](const std::string& name) {
    return std::find(sizes().begin(), sizes().end(), name) != sizes().end();
  };
  matrix::Case plain;  // only the combination and the sizes
  for (const auto& [name, value] : smallest_.values)
    if (keep_.contains(name) || is_size(name)) plain.values.insert({name, value});
  std::vector<matrix::Case> candidates = {with_sizes_at_minimum(plain), plain,
                                          with_sizes_at_minimum(smallest_)};
  for (const std::string& size : sizes()) {
    const std::int64_t now = matrix::integer_of(axes_, smallest_, size);
    std::set<std::int64_t> values;
    if (!keep_.contains(size))
      if (const auto least = least_allowed(smallest_, size)) values.insert(*least);
    if (now / 2 >= axes_.find(size)->minimum) values.insert(now / 2);
    for (const std::int64_t value : values) {
      if (value >= now) continue;
      candidates.push_back(smallest_);
      matrix::set_value(axes_, candidates.back(), size, value);
    }
  }
  for (const auto& [name, value] : smallest_.values) {
    if (keep_.contains(name) || is_size(name)) continue;
    candidates.push_back(smallest_);
    candidates.back().values.erase(name);
  }
  return candidates;
}

std::optional<matrix::Case> Reducer::next() {
  if (jobs_ >= kMostReductions) return std::nullopt;
  for (matrix::Case& candidate : smaller()) {
    if (candidate == smallest_ || passes_[matrix::canonical_text(candidate)] >= tries_ ||
        !allowed_(candidate))
      continue;
    return asked_ = std::move(candidate);
  }
  return std::nullopt;
}

void Reducer::record(Outcome outcome) {
  ++jobs_;
  if (outcome == Outcome::fail) smallest_ = asked_;
  // A case without an outcome is given up too: otherwise it would be tried again and again.
  else
    passes_[matrix::canonical_text(asked_)] += outcome == Outcome::pass ? 1 : tries_;
}

}  // namespace graphproof::shrink

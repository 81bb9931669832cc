#include "matrix/cover/model/draw.h"

#include <numeric>
#include <utility>

#include "matrix/cover/model/oracle.h"
#include "matrix/cover/model/random.h"

namespace graphproof::cover {
namespace {

/// The values of a parameter that it has not tried yet.
class Untried {
 public:
  explicit Untried(const Parameter& parameter) : values_(&parameter.values) {
    for (std::size_t value = 0; value < values_->size(); ++value) {
      left_.push_back(static_cast<int>(value));
      weight_ += (*values_)[value].weight;
    }
  }

  /// Takes a value out, each with a probability in proportion to its weight. REQUIRES: one is left.
  int take(Random& random) {
    int at = random.below(weight_);
    std::size_t place = 0;
    while (at >= weight(left_[place])) at -= weight(left_[place++]);
    const int value = left_[place];
    left_.erase(left_.begin() + static_cast<std::ptrdiff_t>(place));
    weight_ -= weight(value);
    return value;
  }

 private:
  int weight(int value) const { return (*values_)[static_cast<std::size_t>(value)].weight; }

  const std::vector<Value>* values_;
  std::vector<int> left_;
  int weight_ = 0;  // of the values that are left
};

/// The visible parameters, each order with the same probability.
std::vector<int> shuffled(int parameters, Random& random) {
  std::vector<int> order(static_cast<std::size_t>(parameters));
  std::iota(order.begin(), order.end(), 0);
  for (int left = parameters; left > 1; --left)
    std::swap(order[static_cast<std::size_t>(left - 1)],
              order[static_cast<std::size_t>(random.below(left))]);
  return order;
}

}  // namespace

std::vector<Row> draw_rows(const Model& model, std::size_t size, std::uint64_t seed) {
  Oracle oracle(model);
  Random random(seed);
  const int parameters = model.visible_count();
  std::vector<Row> rows;
  while (rows.size() < size) {
    std::vector<Untried> untried;
    std::vector<int> first(model.parameters.size(), kAny);
    for (int parameter = 0; parameter < parameters; ++parameter) {
      const auto at = static_cast<std::size_t>(parameter);
      untried.emplace_back(model.parameters[at]);
      first[at] = untried.back().take(random);
    }
    // A valid row near the first choices; a value that it has needs no question of its own below.
    if (!oracle.solve({}, first)) break;
    Cells taken;
    for (const int parameter : shuffled(parameters, random)) {
      const auto at = static_cast<std::size_t>(parameter);
      taken.push_back({parameter, first[at]});
      while (oracle.row()[at] != taken.back().value && !oracle.solve(taken))
        taken.back().value = untried[at].take(random);
    }
    Row row(static_cast<std::size_t>(parameters));
    for (const Cell& cell : taken) row[static_cast<std::size_t>(cell.parameter)] = cell.value;
    oracle.exclude(row);
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace graphproof::cover

#include "matrix/cover/orthogonal.h"

#include <algorithm>

namespace graphproof::cover {
namespace {

int least_factor(int number) {
  for (int factor = 2; factor * factor <= number; ++factor)
    if (number % factor == 0) return factor;
  return number;
}

/// The exponent of a prime power; 0 for any other number.
int exponent_of(int number) {
  if (number < 2) return 0;
  int exponent = 0;
  for (const int prime = least_factor(number); number % prime == 0; number /= prime) ++exponent;
  return number == 1 ? exponent : 0;
}

/// A finite field as tables of its sums and products. An element is a polynomial over the integers
/// modulo `prime_`: its coefficients are the digits of the element's number in base `prime_`.
class Field {
 public:
  explicit Field(int order)
      : order_(order), prime_(least_factor(order)), exponent_(exponent_of(order)) {
    // At least one polynomial x^exponent + rest is irreducible; the first whose products have no
    // zero divisors is.
    for (int rest = 0; rest < order; ++rest)
      if (multiply_modulo(rest)) return;
  }
  int sum(int left, int right) const {
    int result = 0;
    for (int place = 1; place < order_; place *= prime_)
      result += (left / place % prime_ + right / place % prime_) % prime_ * place;
    return result;
  }
  int product(int left, int right) const {
    return products_[static_cast<std::size_t>(left * order_ + right)];
  }

 private:
  int times(int element, int digit) const {
    int result = 0;
    for (int place = 1; place < order_; place *= prime_)
      result += element / place * digit % prime_ * place;
    return result;
  }
  /// Fills the table of products modulo x^exponent + rest; false if they have zero divisors.
  bool multiply_modulo(int rest) {
    const int carried = times(rest, prime_ - 1), top = order_ / prime_;
    products_.assign(static_cast<std::size_t>(order_) * static_cast<std::size_t>(order_), 0);
    for (int left = 1; left < order_; ++left)
      for (int right = 1; right < order_; ++right) {
        int result = 0;
        for (int place = top; place >= 1;
             place /= prime_) {  // Horner's scheme over the digits of `right`
          if (exponent_ > 1) result = sum(result % top * prime_, times(carried, result / top));
          result = sum(result, times(left, right / place % prime_));
        }
        if (result == 0) return false;
        products_[static_cast<std::size_t>(left * order_ + right)] = result;
      }
    return true;
  }

  int order_, prime_, exponent_;
  std::vector<int> products_;
};

}  // namespace

int prime_power_from(int least) {
  for (int order = std::max(least, 2); order <= kMostOrder; ++order)
    if (exponent_of(order) > 0) return order;
  return 0;
}

std::vector<std::vector<int>> orthogonal_array(int order, int strength) {
  const Field field(order);
  std::vector<std::vector<int>> rows;
  std::vector<int> coefficients(static_cast<std::size_t>(strength), 0);  // the leading one first
  for (std::size_t place = 0; place < coefficients.size();) {
    std::vector<int> row;
    for (int at = 0; at < order; ++at) {
      int value = 0;
      for (const int coefficient : coefficients)
        value = field.sum(field.product(value, at), coefficient);
      row.push_back(value);
    }
    row.push_back(coefficients.front());
    rows.push_back(std::move(row));
    for (place = 0; place < coefficients.size() && ++coefficients[place] == order; ++place)
      coefficients[place] = 0;
  }
  return rows;
}

}  // namespace graphproof::cover

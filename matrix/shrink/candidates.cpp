#include "matrix/shrink/candidates.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cmath>
#include <numeric>

namespace graphproof::shrink {
namespace {

// The probability of each size before anything is known, divided evenly among its sets: most faults
// need one or two values.
constexpr double kPriorOfSize[kMostValues + 1] = {0.01, 0.3, 0.4, 0.2, 0.1};
constexpr double kPriorOfWhole = 0.002;  // that it takes more than four values

double entropy(double p) {
  return p <= 0 || p >= 1 ? 0 : -p * std::log2(p) - (1 - p) * std::log2(1 - p);
}

double fail_probability(const Noise& noise, Mask candidate, Mask row) {
  return (candidate & ~row) == 0 ? 1 - noise.pass_triggered : noise.fail_otherwise;
}

}  // namespace

double Likely::probability() const {
  return std::accumulate(by_belief.begin(), by_belief.end(), 0.0);
}

Candidates::Candidates(int bits, std::vector<Belief> beliefs)
    : whole_(bits == kMostBits ? ~Mask{0} : (Mask{1} << bits) - 1), beliefs_(std::move(beliefs)) {
  assert(bits >= 1 && bits <= kMostBits && !beliefs_.empty() && beliefs_.size() <= kMostBeliefs);
  std::vector<std::size_t> begin = {0};
  masks_.push_back(0);
  // A set of each size is a set of one size less with one higher bit.
  for (int size = 1; size <= std::min(kMostValues, bits); ++size) {
    begin.push_back(masks_.size());
    const std::size_t smaller = begin[begin.size() - 2], end = masks_.size();
    for (std::size_t i = smaller; i < end; ++i)
      for (int bit = std::bit_width(masks_[i]); bit < bits; ++bit)
        masks_.push_back(masks_[i] | Mask{1} << bit);
  }
  begin.push_back(masks_.size());
  std::vector<double> prior;
  for (std::size_t size = 0; size + 1 < begin.size(); ++size)
    prior.resize(begin[size + 1],
                 kPriorOfSize[size] / static_cast<double>(begin[size + 1] - begin[size]));
  if (bits > kMostValues) {
    masks_.push_back(whole_);
    prior.push_back(kPriorOfWhole);
  }
  const double sum = std::accumulate(prior.begin(), prior.end(), 0.0);
  double beliefs_sum = 0;
  for (const Belief& belief : beliefs_) beliefs_sum += belief.prior;
  for (const double one : prior)
    for (const Belief& belief : beliefs_)
      weights_.push_back(one / sum * belief.prior / beliefs_sum);
}

void Candidates::learn(Mask row, bool failed) {
  std::array<double, kMostBeliefs> triggered{}, otherwise{};
  for (std::size_t belief = 0; belief < beliefs_.size(); ++belief) {
    const Noise& noise = beliefs_[belief].noise;
    triggered[belief] = failed ? 1 - noise.pass_triggered : noise.pass_triggered;
    otherwise[belief] = failed ? noise.fail_otherwise : 1 - noise.fail_otherwise;
  }
  double sum = 0;
  for (std::size_t candidate = 0; candidate < masks_.size(); ++candidate) {
    const auto& factor = (masks_[candidate] & ~row) == 0 ? triggered : otherwise;
    for (std::size_t belief = 0; belief < beliefs_.size(); ++belief)
      sum += weights_[at(candidate, belief)] *= factor[belief];
  }
  for (double& weight : weights_) weight /= sum;
}

std::vector<Likely> Candidates::likely(double probability, std::size_t most) const {
  std::vector<std::pair<double, std::size_t>> order;
  const double negligible =
      (1 - probability) /
      static_cast<double>(masks_.size());  // what all left-out candidates together may have
  for (std::size_t candidate = 0; candidate < masks_.size(); ++candidate) {
    double sum = 0;
    for (std::size_t belief = 0; belief < beliefs_.size(); ++belief)
      sum += weights_[at(candidate, belief)];
    if (sum > negligible) order.emplace_back(-sum, candidate);
  }
  std::sort(order.begin(),
            order.end());  // of equally probable ones the smaller set, which was made first
  std::vector<Likely> result;
  double covered = 0;
  for (const auto& [minus, candidate] : order) {
    if (covered >= probability || result.size() == most) break;
    result.push_back(likely_at(candidate));
    covered -= minus;
  }
  return result;
}

Likely Candidates::likely_at(std::size_t candidate) const {
  Likely one{.mask = masks_[candidate]};
  for (std::size_t belief = 0; belief < beliefs_.size(); ++belief)
    one.by_belief[belief] = weights_[at(candidate, belief)];
  return one;
}

std::vector<Likely> Candidates::within(Mask mask) const {
  std::vector<Likely> result;
  for (std::size_t candidate = 0; candidate < masks_.size(); ++candidate)
    if ((masks_[candidate] & ~mask) == 0) result.push_back(likely_at(candidate));
  return result;
}

std::vector<double> Candidates::share_of_bits() const {
  std::vector<double> share(static_cast<std::size_t>(std::bit_width(whole_)), 0);
  for (std::size_t candidate = 0; candidate < masks_.size(); ++candidate) {
    double sum = 0;
    for (std::size_t belief = 0; belief < beliefs_.size(); ++belief)
      sum += weights_[at(candidate, belief)];
    for (Mask left = masks_[candidate]; left != 0; left &= left - 1)
      share[static_cast<std::size_t>(std::countr_zero(left))] += sum;
  }
  return share;
}

std::vector<double> Candidates::beliefs_now() const {
  std::vector<double> now(beliefs_.size(), 0);
  for (std::size_t i = 0; i < weights_.size(); ++i) now[i % beliefs_.size()] += weights_[i];
  return now;
}

double information(std::span<const Likely> likely, std::span<const Belief> beliefs,
                   std::span<const Mask> rows) {
  assert(!rows.empty() && rows.size() <= kMostAtOnce);
  // Given the candidate and the noise, the outcomes of different rows are independent. The noise
  // itself is the same for all rows.
  std::vector<double> of_outcomes(std::size_t{1} << rows.size(), 0), of_one(of_outcomes.size());
  double conditional = 0, total = 0;
  const auto entropy_of = [](const std::vector<double>& parts, double sum) {
    double bits = 0;
    for (const double part : parts)
      if (part > 0) bits -= part / sum * std::log2(part / sum);
    return bits;
  };
  for (const Likely& one : likely) {
    const double probability = one.probability();
    if (rows.size() == 1) {
      double fails = 0;
      for (std::size_t belief = 0; belief < beliefs.size(); ++belief)
        fails += one.by_belief[belief] * fail_probability(beliefs[belief].noise, one.mask, rows[0]);
      conditional += probability * entropy(fails / probability);
      of_outcomes[1] += fails;
      of_outcomes[0] += probability - fails;
    } else {
      std::fill(of_one.begin(), of_one.end(), 0.0);
      for (std::size_t belief = 0; belief < beliefs.size(); ++belief) {
        std::vector<double> product = {one.by_belief[belief]};
        for (const Mask row : rows) {
          const double fails = fail_probability(beliefs[belief].noise, one.mask, row);
          const std::size_t before = product.size();
          product.resize(before * 2);
          for (std::size_t i = 0; i < before; ++i) {
            product[before + i] = product[i] * fails;
            product[i] *= 1 - fails;
          }
        }
        for (std::size_t i = 0; i < product.size(); ++i) of_one[i] += product[i];
      }
      for (std::size_t i = 0; i < of_one.size(); ++i) of_outcomes[i] += of_one[i];
      conditional += probability * entropy_of(of_one, probability);
    }
    total += probability;
  }
  if (total <= 0) return 0;
  return entropy_of(of_outcomes, total) - conditional / total;
}

}  // namespace graphproof::shrink

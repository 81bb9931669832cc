#include "matrix/shrink/neighbourhood.h"

#include <algorithm>
#include <bit>
#include <cassert>

namespace graphproof::shrink {

Neighbourhood::Neighbourhood(const cover::Model& model, cover::Row failing,
                             const std::vector<int>& parameters)
    : model_(model), oracle_(model), failing_(std::move(failing)) {
  assert(static_cast<int>(failing_.size()) == model.visible_count());
  for (std::size_t parameter = 0; parameter < failing_.size(); ++parameter)
    passes_.emplace_back(model.parameters[parameter].values.size(), 0);
  std::vector<int> free;
  for (const int parameter : parameters) {
    const int count =
        static_cast<int>(model.parameters[static_cast<std::size_t>(parameter)].values.size());
    bool changes = false;
    for (int value = 0; value < count && !changes; ++value)
      if (value != failing_[static_cast<std::size_t>(parameter)])
        changes = oracle_.solve(cover::Cells{{parameter, value}});
    (changes ? free : fixed_).push_back(parameter);
  }
  shared_ = free.size() > static_cast<std::size_t>(kMostBits);
  const std::size_t count = std::min<std::size_t>(free.size(), kMostBits);
  bits_.resize(count);
  for (std::size_t i = 0; i < free.size(); ++i) bits_[i * count / free.size()].push_back(free[i]);
}

Mask Neighbourhood::mask(const cover::Row& row) const {
  Mask mask = 0;
  for (std::size_t bit = 0; bit < bits_.size(); ++bit) {
    const bool equal = std::all_of(bits_[bit].begin(), bits_[bit].end(), [&](int parameter) {
      return row[static_cast<std::size_t>(parameter)] ==
             failing_[static_cast<std::size_t>(parameter)];
    });
    if (equal) mask |= Mask{1} << bit;
  }
  return mask;
}

std::vector<int> Neighbourhood::parameters(Mask mask) const {
  std::vector<int> found;
  for (; mask != 0; mask &= mask - 1) {
    const auto& bit = bits_[static_cast<std::size_t>(std::countr_zero(mask))];
    found.insert(found.end(), bit.begin(), bit.end());
  }
  return found;
}

cover::Cells Neighbourhood::cells_of(Mask mask) const {
  cover::Cells cells;
  for (const int parameter : parameters(mask))
    cells.push_back({parameter, failing_[static_cast<std::size_t>(parameter)]});
  return cells;
}

bool Neighbourhood::solve(const cover::Cells& cells, const std::vector<int>& preferred) {
  return oracle_.solve(cells, preferred);
}

Mask Neighbourhood::closure(Mask mask) {
  if (const auto known = closures_.find(mask); known != closures_.end()) return known->second;
  Mask closed = bits_.size() == static_cast<std::size_t>(kMostBits) ? ~Mask{0}
                                                                    : (Mask{1} << bits_.size()) - 1;
  const cover::Cells cells = cells_of(mask);
  // A valid row that lacks a bit shows that the mask does not imply it. Each row that is found
  // shows this for many bits.
  for (std::size_t bit = 0; bit < bits_.size(); ++bit) {
    if ((mask >> bit & 1) != 0 || (closed >> bit & 1) == 0) continue;
    for (const int parameter : bits_[bit]) {
      const int count =
          static_cast<int>(model_.parameters[static_cast<std::size_t>(parameter)].values.size());
      for (int value = 0; value < count && (closed >> bit & 1) != 0; ++value) {
        if (value == failing_[static_cast<std::size_t>(parameter)]) continue;
        cover::Cells more = cells;
        more.push_back({parameter, value});
        if (oracle_.solve(more))
          closed &=
              this->mask({oracle_.row().begin(),
                          oracle_.row().begin() + static_cast<std::ptrdiff_t>(failing_.size())});
      }
    }
  }
  closures_.emplace(mask, closed);
  return closed;
}

void Neighbourhood::add_passed(const cover::Row& row) {
  for (std::size_t parameter = 0; parameter < row.size(); ++parameter)
    if (row[parameter] >= 0) ++passes_[parameter][static_cast<std::size_t>(row[parameter])];
  passed_.push_back(row);
}

std::vector<int> Neighbourhood::other_values(int parameter, cover::Random& random) const {
  const auto& passes = passes_[static_cast<std::size_t>(parameter)];
  std::vector<int> left, order;
  for (int value = 0; value < static_cast<int>(passes.size()); ++value)
    if (value != failing_[static_cast<std::size_t>(parameter)]) left.push_back(value);
  while (!left.empty()) {
    int sum = 0;
    for (const int value : left) sum += 1 + passes[static_cast<std::size_t>(value)];
    int drawn = random.below(sum);
    std::size_t at = 0;
    while (drawn > passes[static_cast<std::size_t>(left[at])])
      drawn -= 1 + passes[static_cast<std::size_t>(left[at++])];
    order.push_back(left[at]);
    left.erase(left.begin() + static_cast<std::ptrdiff_t>(at));
  }
  return order;
}

std::optional<cover::Row> Neighbourhood::row(Mask keep, std::optional<int> without, Rest rest,
                                             cover::Random& random) {
  cover::Cells cells = cells_of(keep);
  std::vector<char> kept(failing_.size(), 0);
  for (const cover::Cell& cell : cells) kept[static_cast<std::size_t>(cell.parameter)] = 1;
  std::vector<int> preferred(model_.parameters.size(), -1);
  const cover::Row* passed =
      passed_.empty()
          ? nullptr
          : &passed_[static_cast<std::size_t>(random.below(static_cast<int>(passed_.size())))];
  for (std::size_t parameter = 0; parameter < failing_.size(); ++parameter) {
    preferred[parameter] = failing_[parameter];
    if (kept[parameter] != 0) continue;
    if (passed != nullptr && (*passed)[parameter] >= 0 &&
        (rest == Rest::passed || (*passed)[parameter] != failing_[parameter])) {
      preferred[parameter] = (*passed)[parameter];
      continue;
    }
    if (const std::vector<int> others = other_values(static_cast<int>(parameter), random);
        !others.empty())
      preferred[parameter] = others.front();
  }
  bool found = false;
  if (without) {
    for (const int parameter : bits_[static_cast<std::size_t>(*without)])
      for (const int value : other_values(parameter, random)) {
        if (found) break;
        cells.push_back({parameter, value});
        if (!(found = solve(cells, preferred))) cells.pop_back();
      }
  } else {
    found = solve(cells, preferred);
  }
  if (!found) return std::nullopt;
  const auto shown = [&] {
    return cover::Row(oracle_.row().begin(),
                      oracle_.row().begin() + static_cast<std::ptrdiff_t>(failing_.size()));
  };
  cover::Row row = shown();
  std::vector<int> order;
  for (int parameter = 0; parameter < static_cast<int>(row.size()); ++parameter)
    if (kept[static_cast<std::size_t>(parameter)] == 0) order.push_back(parameter);
  for (std::size_t i = order.size(); i > 1; --i)
    std::swap(order[i - 1], order[static_cast<std::size_t>(random.below(static_cast<int>(i)))]);
  if (passed != nullptr && rest == Rest::passed) {
    // Take as many values of the passed row as the rules allow together with the kept ones.
    for (const int parameter : order) {
      const int value = (*passed)[static_cast<std::size_t>(parameter)];
      if (value < 0) continue;
      cells.push_back({parameter, value});
      if (row[static_cast<std::size_t>(parameter)] == value) continue;
      if (solve(cells, preferred))
        row = shown();
      else
        cells.pop_back();
    }
    return row;
  }
  // Change, one after the other, the values that still equal the failing row's, and hold those that
  // already differ.
  const auto differs = [&](int parameter) {
    return row[static_cast<std::size_t>(parameter)] !=
           failing_[static_cast<std::size_t>(parameter)];
  };
  std::stable_partition(order.begin(), order.end(), differs);
  for (const int parameter : order) {
    if (!differs(parameter))
      for (const int value : other_values(parameter, random)) {
        cells.push_back({parameter, value});
        const bool possible = solve(cells, row);
        cells.pop_back();
        if (!possible) continue;
        row = shown();
        break;
      }
    if (differs(parameter)) cells.push_back({parameter, row[static_cast<std::size_t>(parameter)]});
  }
  return row;
}

}  // namespace graphproof::shrink

#include "matrix/cover/domains.h"

namespace graphproof::cover {

Domains::Domains(const Problem& problem)
    : problem_(&problem),
      bits_(problem.allowed()),
      sizes_(static_cast<std::size_t>(problem.columns()), 0) {
  alive_ = !problem.contradictory();
  for (int column = 0; column < problem.columns(); ++column) {
    for (int symbol = problem.first(column); symbol < problem.first(column + 1); ++symbol)
      sizes_[static_cast<std::size_t>(column)] += can(symbol) ? 1 : 0;
    if (size(column) == 0) alive_ = false;
    changed_.push_back(column);
  }
  if (alive_) propagate();
}

int Domains::first(int column) const {
  const int begin = problem_->first(column);
  auto word = static_cast<std::size_t>(begin >> 6);
  Word left = bits_[word] & (~Word{0} << (begin & 63));
  while (left == 0) left = bits_[++word];
  return static_cast<int>(word) * 64 + std::countr_zero(left);
}

bool Domains::assign(int symbol) {
  const int column = problem_->column_of(symbol);
  if (!alive_ || !can(symbol)) return alive_ = false;
  if (size(column) == 1) return true;
  drop_range(bits_.data(), problem_->first(column), problem_->first(column + 1));
  put(bits_.data(), symbol);
  sizes_[static_cast<std::size_t>(column)] = 1;
  changed_.push_back(column);
  return propagate();
}

bool Domains::remove(int symbol) {
  if (!alive_ || !can(symbol)) return alive_;
  take(symbol);
  return propagate();
}

void Domains::take(int symbol) {
  const int column = problem_->column_of(symbol);
  drop(bits_.data(), symbol);
  if (--sizes_[static_cast<std::size_t>(column)] == 0) alive_ = false;
  changed_.push_back(column);
}

bool Domains::propagate() {
  while (alive_ && !changed_.empty()) {
    const int column = changed_.back();
    changed_.pop_back();
    if (size(column) == 1) {
      const Word* forbidden = problem_->forbidden(first(column));
      for (int word = 0; word < problem_->words(); ++word)
        for (Word gone = forbidden[word] & bits_[static_cast<std::size_t>(word)]; gone != 0;
             gone &= gone - 1)
          take(word * 64 + std::countr_zero(gone));
    }
    if (problem_->cubes().empty() || !alive_) continue;
    // Only cubes that hold every symbol left in the column can forbid something, and all of those
    // are in the list of any one of these symbols.
    for (const int at : problem_->cubes_of(first(column))) {
      const Cube& cube = problem_->cubes()[static_cast<std::size_t>(at)];
      if (!propagate_cube(cube)) break;
    }
  }
  changed_.clear();
  return alive_;
}

bool Domains::propagate_cube(const Cube& cube) {
  int open = -1;
  for (const int column : cube.columns) {
    bool inside = true, outside = true;
    for (int symbol = problem_->first(column); symbol < problem_->first(column + 1); ++symbol)
      if (can(symbol)) (has(cube.mask.data(), symbol) ? outside : inside) = false;
    if (outside) return true;  // this column can't be in the cube: never violated
    if (inside) continue;
    if (open >= 0) return true;  // two columns are still free
    open = column;
  }
  if (open < 0) return alive_ = false;
  for (int symbol = problem_->first(open); symbol < problem_->first(open + 1); ++symbol)
    if (can(symbol) && has(cube.mask.data(), symbol)) take(symbol);
  return alive_;
}

}  // namespace graphproof::cover

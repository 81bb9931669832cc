// A model in the form that the generator works on. Parameters are columns, every pair of a column
// and a value is a symbol with a number of its own, and constraints are forbidden cubes over sets
// of symbols. So most questions take a few words of AND and popcount.
#pragma once

#include <bit>
#include <cstdint>
#include <span>
#include <vector>

#include "matrix/cover/model/model.h"

namespace graphproof::cover {

/// Sets of symbols are bits in words.
using Word = std::uint64_t;
using Words = std::vector<Word>;

inline bool has(const Word* words, int bit) { return (words[bit >> 6] >> (bit & 63)) & 1; }
inline void put(Word* words, int bit) { words[bit >> 6] |= Word{1} << (bit & 63); }
inline void drop(Word* words, int bit) { words[bit >> 6] &= ~(Word{1} << (bit & 63)); }

/// Clears the bits of [begin, end), which is not empty.
inline void drop_range(Word* words, int begin, int end) {
  const int first = begin >> 6, last = (end - 1) >> 6;
  const Word keep_low = ~(~Word{0} << (begin & 63)),
             keep_high = ~(~Word{0} >> (63 - ((end - 1) & 63)));
  if (first == last) {
    words[first] &= keep_low | keep_high;
    return;
  }
  words[first] &= keep_low;
  for (int word = first + 1; word < last; ++word) words[word] = 0;
  words[last] &= keep_high;
}

/// Calls `visit(bit)` for each set bit from `begin` on, of `count` words.
template <class Visit>
void for_each_bit(const Word* words, int begin, std::size_t count, const Visit& visit) {
  auto at = static_cast<std::size_t>(begin >> 6);
  if (at >= count) return;
  Word left = words[at] & (~Word{0} << (begin & 63));
  while (true) {
    for (; left != 0; left &= left - 1) visit(static_cast<int>(at) * 64 + std::countr_zero(left));
    if (++at == count) return;
    left = words[at];
  }
}

/// A row is forbidden if in each of the cube's columns it has one of the cube's symbols, that is,
/// if popcount(mask & row) is the number of columns.
struct Cube {
  Words mask;
  std::vector<int> columns;
  int word_begin = 0, word_end = 0;  // the words of the mask that are not zero
};

/// Columns, symbols and cubes of a model. Grows more forbidden pairs as they are proved.
class Problem {
 public:
  /// REQUIRES: check_model(model) passes.
  explicit Problem(const Model& model);

  int columns() const { return static_cast<int>(first_.size()) - 1; }
  int visible() const { return visible_; }  // columns [0, visible) are in rows and get covered
  int symbols() const { return first_.back(); }
  int words() const { return words_; }
  int first(int column) const { return first_[static_cast<std::size_t>(column)]; }
  int size(int column) const { return first(column + 1) - first(column); }
  int column_of(int symbol) const { return column_of_[static_cast<std::size_t>(symbol)]; }
  int weight(int symbol) const { return weight_[static_cast<std::size_t>(symbol)]; }

  /// The symbols of other columns that no row has together with `symbol`, as far as is known.
  const Word* forbidden(int symbol) const {
    return forbidden_.data() + static_cast<std::size_t>(symbol) * stride();
  }
  /// Notes that no row has both symbols.
  void forbid(int left, int right);
  /// Notes that no row has the symbol.
  void ban(int symbol);
  const Words& allowed() const { return allowed_; }  // the symbols that are not banned
  bool constrained(int symbol) const { return constrained_[static_cast<std::size_t>(symbol)]; }

  const std::vector<Cube>& cubes() const { return cubes_; }
  std::span<const int> cubes_of(int symbol) const {
    const auto at = static_cast<std::size_t>(symbol);
    return {cube_list_.data() + cube_begin_[at], cube_list_.data() + cube_begin_[at + 1]};
  }
  bool contradictory() const { return contradictory_; }  // whether some constraint can't hold

  /// Whether the row with these bits may replace `old` by `symbol`, of the same column. Only the
  /// constraints on `symbol` are checked.
  bool allows(const Word* bits, int old, int symbol) const;
  /// Whether a full row of symbols fulfils every constraint.
  bool valid(const int* row, const Word* bits) const;

 private:
  std::size_t stride() const { return static_cast<std::size_t>(words_); }
  void add_clause(const Clause& clause);

  int visible_ = 0, words_ = 0;
  bool contradictory_ = false;
  std::vector<int> first_, column_of_, weight_;
  Words forbidden_, allowed_;
  std::vector<char> constrained_;
  std::vector<Cube> cubes_;
  std::vector<int> cube_list_;
  std::vector<std::size_t> cube_begin_;
};

}  // namespace graphproof::cover

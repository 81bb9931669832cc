// The cases on the way to a case with CUDA graphs: eager, the narrowest scope, then wider ones, and
// last what overlaps. Whoever takes them in this order knows which step broke something.
#pragma once

#include <string>
#include <vector>

#include "matrix/catalogue/catalogue.h"

namespace graphproof::matrix {

/// One case of the way. Every case differs from the one before it in one respect.
struct Rung {
  std::string what;  // "attn captured", "overlap_grad_reduce=true"
  Case test_case;
};

struct Ladder {
  Case eager;   // the target without graphs
  Rung narrow;  // the narrowest scope that rules allow; the target itself if there is none
  std::vector<Rung> wider;  // up to the target, which is the last; empty if `narrow` is the target
};

/// The way to `target`. Cases between that a rule refuses are left out. REQUIRES: `target` has
/// graphs.
Ladder ladder_to(const Case& target, const Catalogue& catalogue, const Machine& machine);

}  // namespace graphproof::matrix

// Which experts the tokens of one inference pass go to. Routers write their choices here, where an
// engine and the suites read them, or take them from here.
//
// A rounding can move a token whose scores nearly tie to another expert, and then no bound of
// reordered sums holds for what follows. A pass that is compared with another one therefore takes
// the choices of that one, and tells by which scores it would have chosen itself.
#pragma once

#include <vector>

#include "fixtures/tensors/torch.h"

namespace graphproof::workloads {

/// N tokens, E experts, L layers of the model. Entries of layers without experts are undefined. The
/// tensors are on the device, and static where a graph holds the pass.
struct ExpertChoices {
  at::Tensor requested;  // [N] bool in: the tokens that belong to requests; others have no expert
  bool given = false;    // whether the routers take the choices instead of making them
  std::vector<at::Tensor> experts;      // L of [N, E] bool, out; in if they are given
  std::vector<at::Tensor> scores = {};  // L of [N, E] fp32 out, only if they are given
};

}  // namespace graphproof::workloads

// How many graphs a step of a rank launches. Where PyTorch's compiler captures, nobody knows that
// ahead, and the evidence tells.
#pragma once

#include <algorithm>

#include "suites/checks/attempt/capture.h"
#include "suites/checks/attempt/judgement.h"
#include "workloads/engine_traits/engine_traits.h"

namespace graphproof::checks {

/// What is expected of a rank. PyTorch's compiler decides how many graphs a step has, if it
/// captures what it compiles: as many as the first replayed step of lockstep_graph launches, and at
/// least every graph that this arm has captured, besides the empty one with which the compiler
/// makes its pool.
inline Expected expected_launches(Judgement& judgement, const RankFiles& files) {
  const Axes& axes = judgement.attempt().axes;
  Expected expected = judgement.expected_of(files);
  if (axes.subject() != "torch_compile" ||
      !engines::traits_of(axes.text("impl")).captures_modules())
    return expected;
  expected.launches_per_step = 0;
  for (const record::CaptureLine* capture :
       judgement.find<record::CaptureLine>(files, "lockstep_graph"))
    expected.launches_per_step += succeeded(*capture) && capture->nodes > 0 ? 1 : 0;
  const auto lines = judgement.find<record::ReplayLine>(files, "lockstep_graph");
  if (!lines.empty())
    expected.launches_per_step = std::max(expected.launches_per_step, lines.front()->replays);
  return expected;
}

}  // namespace graphproof::checks

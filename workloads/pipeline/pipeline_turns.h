// What a pipeline stage runs and when stages hand each other activations and gradients, so that no
// stage ever waits in a circle. Pure; the schedule of workloads/training/train_step.h follows it.
//
// The rule: all transfers of a step have one total order, by turn and then by edge, and every stage
// takes part in its own ones in that order, after the work of the turn. The earliest transfer that
// is not over then always has both its ends waiting for it, so the step ends even where a send only
// ends when it is received (MPI's rendezvous, NCCL), on one stream, on however many communicators.
// Megatron-LM gets the same for 1F1B by sending one way and receiving the other in one group; in a
// turn in which both neighbours worked, these are the two transfers of one turn here.
//
// A turn is one unit of time in a pipeline whose forwards and backwards take equally long: each
// stage runs the next entry of its order (pipeline_order.h) as soon as its input has come. What a
// stage made in a turn travels in that turn.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <vector>

#include "workloads/pipeline/pipeline_order.h"

namespace graphproof::order {

/// A chunk's forward or backward of one microbatch, both from 0.
struct Work {
  bool forward = true;
  std::int64_t chunk = 0, microbatch = 0;
  auto operator<=>(const Work&) const = default;
};

/// The directed edge from one stage to another, and the work of stage `to` that takes what is
/// transferred: a forward an activation, a backward the gradient of what that chunk's forward made.
struct Transfer {
  std::int64_t from = 0, to = 0;
  Work takes;
  auto operator<=>(const Transfer&) const = default;
};

/// A stage's part of a turn: its work, if any, then those transfers that it takes part in, in the
/// order of the edges.
struct Turn {
  std::optional<Work> work;
  std::optional<Work>
      beside;  // in pairs: the forward that runs layer by layer beside the backward `work`
  std::vector<Transfer> transfers;
};

/// All turns of one stage in which it works or takes part in a transfer. Refused for a stage that
/// is none, for several chunks on one stage, and for an order that cannot run: a stage would wait
/// for what the others make only later. `in_pairs`: between the first backward and the last forward
/// each backward and the forward behind it are one piece of work, as layer_order() has them, which
/// begins when the inputs of both are there.
std::vector<Turn> turns(const Stage& stage, bool in_pairs = false);

/// Every edge that transfers of a pipeline use, ordered: between neighbours in both directions, and
/// with several chunks from the last stage back to the first.
struct Edge {
  std::int64_t from = 0, to = 0;
  auto operator<=>(const Edge&) const = default;
};
std::vector<Edge> edges(std::int64_t pp, std::int64_t chunks);

}  // namespace graphproof::order

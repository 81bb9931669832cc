// Which work a pipeline stage runs and when the stages transfer activations and gradients to each
// other, such that the stages never deadlock. Pure; workloads/training/train_step.h runs it.
//
// Time is divided into slots, as if all forwards and backwards took equally long: in each slot a
// stage runs the next entry of its order (pipeline_order.h) if the input of that entry has arrived.
// The result of a slot's work is transferred in the same slot.
//
// Why there is no deadlock: all transfers of a step have one total order, by slot and then by edge,
// and each stage performs its own transfers in that order, after the work of the slot. Both ends of
// the earliest unfinished transfer therefore always wait for it. This holds even if a send ends
// only when it is received (MPI's rendezvous, NCCL), on one stream, with any number of
// communicators. Megatron-LM's 1F1B reaches the same by grouping a send to a neighbour with the
// receive from it; these are the two transfers of one slot here if both neighbours worked in it.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <vector>

#include "workloads/pipeline/pipeline_order.h"

namespace graphproof::order {

/// The forward or the backward of one chunk for one microbatch. Both are numbered from 0.
struct Work {
  bool forward = true;
  std::int64_t chunk = 0, microbatch = 0;
  auto operator<=>(const Work&) const = default;
};

/// One tensor on its way from one stage to another, with the work of stage `to` that consumes it:
/// a forward consumes an activation, a backward the gradient of the output of its chunk's forward.
struct Transfer {
  std::int64_t from = 0, to = 0;
  Work consumer;
  auto operator<=>(const Transfer&) const = default;
};

/// What one stage does in one slot: first its work, if it has any, then the transfers of which it
/// is an end, in the order of the edges.
struct ScheduleSlot {
  std::optional<Work> work;
  /// Only with pairs: the forward whose layers alternate with those of the backward `work`.
  std::optional<Work> overlapped_forward;
  std::vector<Transfer> transfers;
};

/// The slots of one stage in which it works or transfers, in order. `in_pairs`: between the first
/// backward and the last forward, each backward and the forward after it share a slot, as in
/// layer_order(); the slot begins when the inputs of both have arrived. Throws Refused for an
/// invalid stage, for several chunks on a single stage, and for an order in which stages would wait
/// for each other for ever.
std::vector<ScheduleSlot> schedule_slots(const Stage& stage, bool in_pairs = false);

/// A directed connection between two stages.
struct Edge {
  std::int64_t from = 0, to = 0;
  auto operator<=>(const Edge&) const = default;
};
/// Every edge that the transfers of a pipeline use, sorted: between neighbours in both directions,
/// and with several chunks also between the last stage and the first in both directions.
std::vector<Edge> edges(std::int64_t pp, std::int64_t chunks);

}  // namespace graphproof::order

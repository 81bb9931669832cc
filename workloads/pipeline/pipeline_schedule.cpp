#include "workloads/pipeline/pipeline_schedule.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <string>

namespace graphproof::order {
namespace {

/// What a stage works on in one slot.
struct Unit {
  Work work;
  std::optional<Work> overlapped_forward;
};

/// One unit for each of `works`; with `in_pairs`, a backward and the forward after it are one unit.
std::vector<Unit> units(const std::vector<Work>& works, bool in_pairs) {
  std::vector<Unit> result;
  bool backwards_began = false;
  for (std::size_t i = 0; i < works.size(); ++i) {
    backwards_began = backwards_began || !works[i].forward;
    const bool pair = in_pairs && backwards_began && i + 1 < works.size() && works[i + 1].forward;
    result.push_back({works[i], pair ? std::optional(works[i + 1]) : std::nullopt});
    i += pair ? 1 : 0;
  }
  return result;
}

/// chunk_order() of a stage with the microbatch of each entry. The microbatches of a chunk follow
/// each other from 0, separately for its forwards and its backwards.
std::vector<Work> works(const Stage& stage) {
  std::vector<std::int64_t> forwards(static_cast<std::size_t>(stage.chunks)), backwards = forwards;
  std::vector<Work> result;
  for (const double entry : chunk_order(stage)) {
    const auto chunk = static_cast<std::int64_t>(std::abs(entry)) - 1;
    auto& next = (entry > 0 ? forwards : backwards)[static_cast<std::size_t>(chunk)];
    result.push_back({entry > 0, chunk, next++});
  }
  return result;
}

/// The transfer of the result of `work` on stage `rank`. None if the result stays on the stage, and
/// for the loss and the gradient of the tokens, which nothing consumes.
std::optional<Transfer> transfer_of(const Stage& stage, std::int64_t rank, const Work& work) {
  const std::int64_t step = work.forward ? 1 : -1;
  const std::int64_t last_stage = work.forward ? stage.pp - 1 : 0,
                     last_chunk = work.forward ? stage.chunks - 1 : 0;
  if (stage.pp == 1 || (rank == last_stage && work.chunk == last_chunk)) return std::nullopt;
  if (rank != last_stage) return Transfer{rank, rank + step, work};
  return Transfer{
      rank, stage.pp - 1 - last_stage, {work.forward, work.chunk + step, work.microbatch}};
}

/// Whether the input of `work` on stage `rank` comes from another stage.
bool waits_for_transfer(const Stage& stage, std::int64_t rank, const Work& work) {
  const std::int64_t first_stage = work.forward ? 0 : stage.pp - 1,
                     first_chunk = work.forward ? 0 : stage.chunks - 1;
  return stage.pp > 1 && (rank != first_stage || work.chunk != first_chunk);
}

[[noreturn]] void cannot_run(const Stage& stage, std::int64_t rank, const Work& work) {
  throw Refused(
      "a pipeline of " + std::to_string(stage.pp) + " stages with " + std::to_string(stage.chunks) +
          " chunks, " + std::to_string(stage.microbatches) + " microbatches in groups of " +
          std::to_string(stage.group == 0 ? stage.pp : stage.group),
      "stage " + std::to_string(rank) + " that waits for the " +
          (work.forward ? "forward" : "backward") + " of chunk " + std::to_string(work.chunk) +
          ", microbatch " + std::to_string(work.microbatch) + ", for ever",
      "an order in which every stage gets its input",
      "the stages would wait for each other in a circle",
      "give a multiple of the pipeline size as microbatches, and a group of at least that size");
}

}  // namespace

std::vector<ScheduleSlot> schedule_slots(const Stage& stage, bool in_pairs) {
  if (stage.pp == 1 && stage.chunks > 1)
    throw Refused("a pipeline's chunks", std::to_string(stage.chunks) + " on one stage",
                  "1 chunk on one stage", "chunks take turns on several stages",
                  "give 2 stages or more, or 1 chunk");
  const auto stages = static_cast<std::size_t>(stage.pp);
  std::vector<std::vector<Unit>> order;
  for (std::int64_t rank = 0; rank < stage.pp; ++rank) {
    Stage one = stage;
    one.rank = rank;
    order.push_back(units(works(one), in_pairs));
  }
  std::vector<std::size_t> done(stages, 0);
  std::vector<std::set<Work>> arrived(stages), ran(stages);
  std::vector<ScheduleSlot> result;
  while (true) {
    std::vector<std::optional<Unit>> now(stages);
    const auto ready = [&](std::size_t s, const Work& work) {
      const bool has_input = !waits_for_transfer(stage, static_cast<std::int64_t>(s), work) ||
                             arrived[s].contains(work);
      return has_input && (work.forward || ran[s].contains({true, work.chunk, work.microbatch}));
    };
    for (std::size_t s = 0; s < stages; ++s) {
      if (done[s] == order[s].size()) continue;
      const Unit& next = order[s][done[s]];
      if (ready(s, next.work) && (!next.overlapped_forward || ready(s, *next.overlapped_forward)))
        now[s] = next;
    }
    if (std::none_of(now.begin(), now.end(), [](const auto& unit) { return unit.has_value(); }))
      break;
    ScheduleSlot slot;
    if (const auto& own = now[static_cast<std::size_t>(stage.rank)])
      slot = {.work = own->work, .overlapped_forward = own->overlapped_forward, .transfers = {}};
    for (std::size_t s = 0; s < stages; ++s) {
      if (!now[s]) continue;
      ++done[s];
      for (const std::optional<Work>& work :
           {std::optional(now[s]->work), now[s]->overlapped_forward}) {
        if (!work) continue;
        ran[s].insert(*work);
        const auto transfer = transfer_of(stage, static_cast<std::int64_t>(s), *work);
        if (!transfer) continue;
        arrived[static_cast<std::size_t>(transfer->to)].insert(transfer->consumer);
        if (transfer->from == stage.rank || transfer->to == stage.rank)
          slot.transfers.push_back(*transfer);
      }
    }
    std::sort(slot.transfers.begin(), slot.transfers.end());
    if (slot.work || !slot.transfers.empty()) result.push_back(std::move(slot));
  }
  for (std::size_t s = 0; s < stages; ++s)
    if (done[s] < order[s].size())
      cannot_run(stage, static_cast<std::int64_t>(s), order[s][done[s]].work);
  return result;
}

std::vector<Edge> edges(std::int64_t pp, std::int64_t chunks) {
  std::set<Edge> found;
  for (std::int64_t stage = 0; stage + 1 < pp; ++stage)
    found.insert({{stage, stage + 1}, {stage + 1, stage}});
  if (pp > 1 && chunks > 1) found.insert({{0, pp - 1}, {pp - 1, 0}});
  return {found.begin(), found.end()};
}

}  // namespace graphproof::order

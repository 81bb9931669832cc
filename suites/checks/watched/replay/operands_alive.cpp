// D05 in a watched run: whether the memory that a graph points to still has the owner that it had
// at the capture, as far as samples of PyTorch's allocator and the driver's own calls show. Blocks
// of the graph's own pool are free by design and are not among the evidence.
#include <algorithm>
#include <set>

#include "suites/checks/attempt/concat.h"
#include "suites/checks/watched/job/kernel_name.h"
#include "suites/checks/watched/job/watched_judgement.h"

namespace graphproof::checks::watched::d05 {
namespace {

constexpr std::string_view kWhy =
    "replays read and write memory that belongs to another tensor by now, or is free";
constexpr std::string_view kNext =
    "keep a reference to every tensor that the capture used, and copy new values into it instead "
    "of replacing it (copy_, load_state_dict without assign)";

/// A tensor that was made before the capture and went out of scope within it: a block of no pool
/// that a whole parameter points to and that is free. Fields of larger parameters may be padding,
/// with what the stack held before.
const record::OperandBlock* freed_in_the_capture(const record::OperandBlocksLine& line) {
  if (!line.pool_known) return nullptr;
  const auto found = std::ranges::find_if(line.free_at_capture_blocks, [](const auto& block) {
    return block.place != "field" &&
           std::ranges::all_of(block.pool, [](std::int64_t number) { return number == 0; });
  });
  return found == line.free_at_capture_blocks.end() ? nullptr : &*found;
}

void judge_blocks(WatchedJudgement& judgement, const JobProcess& process, const Executable& one) {
  bool known = false;
  for (const auto& line : process.of<record::OperandBlocksLine>()) {
    if (line.executable != one.number()) continue;
    known |= line.known && line.pool_known;
    // Of a graph that is not launched afterwards the operands may go.
    if (one.launches() <= line.launches) continue;
    if (const record::OperandBlock* block = freed_in_the_capture(line)) {
      judgement.defect(
          process, {.what = concat(one.title(),
                                   ", uses memory that was freed before its capture "
                                   "had ended"),
                    .got = concat("a block of ", block->bytes, " bytes, used by ",
                                  readable_name(block->node), "; ", one.launches() - line.launches,
                                  " launches afterwards"),
                    .want = "every block allocated, by the same owner, at each launch",
                    .why = std::string(kWhy),
                    .next = std::string(kNext)});
      return;
    }
    if (line.freed_blocks == 0) continue;
    std::string got = concat(line.freed_blocks, " of ", line.blocks, " blocks were freed");
    if (!line.freed.empty())
      got += concat(", the first of ", line.freed.front().bytes, " bytes, used by ",
                    readable_name(line.freed.front().node));
    judgement.defect(
        process, {.what = concat(one.title(), ", uses memory that was freed"),
                  .got = concat(got, "; ", one.launches() - line.launches, " launches afterwards"),
                  .want = "every block allocated, by the same owner, at each launch",
                  .why = std::string(kWhy),
                  .next = std::string(kNext)});
    return;  // one finding a graph
  }
  if (!known && one.made->operands > 0)
    judgement.unexercised(concat(process.title(), ": whether the operands of ", one.title(),
                                 " are alive was not looked up"));
  for (const std::string& unread : {one.operands_unread(), unread_update(process, one)})
    if (!unread.empty()) judgement.unexercised(concat(process.title(), ": ", unread));
}

void judge_released(WatchedJudgement& judgement, const JobProcess& process, const Executable& one) {
  for (const auto& line : process.of<record::OperandReleasedLine>()) {
    if (line.executable != one.number() || line.memory == "pinned" || line.memory == "registered")
      continue;  // memory of the host is D60's
    if (line.addresses == 0 || !one.replays || one.replays->launches_after_free == 0) continue;
    judgement.defect(
        process, {.what = concat(one.title(), ", uses memory that went back to the driver"),
                  .got = concat(line.bytes, " bytes of ", line.memory, " memory, given back by ",
                                line.function, "; ", one.replays->launches_after_free,
                                " launches afterwards"),
                  .want = "every operand allocated at each launch",
                  .why = std::string(kWhy),
                  .next = std::string(kNext)});
    return;
  }
}

}  // namespace

record::CheckResult operands_alive(WatchedJudgement& judgement, const WatchedJob& job) {
  int graphs = 0;
  for (const JobProcess& process : job.processes) {
    if (!process.has_graphs()) continue;
    bool any = false;
    for (const Executable& one : executables(process)) {
      if (one.launches() == 0) continue;
      any = true;
      ++graphs;
      judge_blocks(judgement, process, one);
      judge_released(judgement, process, one);
    }
    if (any)
      judgement.confirm(process);
    else
      judgement.excuse(process, "no graph was launched");
  }
  return judgement.result(concat(graphs, " graphs, no operand freed in any sample"),
                          "operands that live until the last launch");
}

}  // namespace graphproof::checks::watched::d05

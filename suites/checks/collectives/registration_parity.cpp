// D27: each rank decides by itself whether NCCL registers the buffers of a captured collective, and
// all must decide the same: a rank that registers waits for addresses that a rank which does not
// never sends. NCCL's log shows the decision; neither the call nor the result does.
#include <algorithm>
#include <array>
#include <functional>
#include <set>

#include "suites/checks/attempt/capture.h"
#include "suites/checks/attempt/concat.h"
#include "suites/checks/attempt/judgement.h"
#include "suites/checks/collectives/nccl_log.h"

namespace graphproof::checks::d27 {
namespace {

// The collectives whose buffers NCCL is expected to register on one node with rings and contiguous
// memory. It never registers those of an in-place all-reduce or a reduce-scatter there (NCCL 2.28.9
// src/register/coll_reg.cc).
constexpr std::array<std::string_view, 3> kRegistering = {"all_gather", "all_reduce", "send_recv"};

/// How many buffers a rank registered, and how many captures it made.
struct Seen {
  int rank = 0;
  std::size_t buffers = 0, captures = 0;
};

std::string ranks_text(const std::vector<Seen>& seen, std::size_t buffers) {
  std::string text;
  for (const Seen& one : seen)
    if (one.buffers == buffers) text += (text.empty() ? "" : ", ") + std::to_string(one.rank);
  return text;
}

/// "1 buffers on ranks 0, 2; 0 buffers on ranks 1, 3"
std::string counts_text(const std::vector<Seen>& seen) {
  std::set<std::size_t, std::greater<>> counts;
  for (const Seen& one : seen) counts.insert(one.buffers);
  std::string text;
  for (const std::size_t count : counts)
    text += concat(text.empty() ? "" : "; ", count, " buffers on ranks ", ranks_text(seen, count));
  return text;
}

bool equal(const std::vector<Seen>& seen) {
  const Seen& first = seen.front();
  // Ranks that ended at different captures can only be compared by whether they registered at all.
  const bool same_captures =
      std::ranges::all_of(seen, [&](const Seen& one) { return one.captures == first.captures; });
  return std::ranges::all_of(seen, [&](const Seen& one) {
    return same_captures ? one.buffers == first.buffers : (one.buffers > 0) == (first.buffers > 0);
  });
}

}  // namespace

/// NCCL's log has the same number of registered buffers on every rank, and none with
/// NCCL_GRAPH_REGISTER=0. Unexercised if NCCL registered none although registration was expected.
record::CheckResult registration_parity(Judgement& judgement, const Attempt& attempt) {
  if (!judgement.has_replays()) return judgement.result("", "");
  const std::string collective = attempt.axes.text("collective"),
                    asked = attempt.axes.text("nccl_graph_register");
  if (attempt.context.device != "cuda")
    judgement.not_applicable(concat("device ", attempt.context.device, " has no NCCL"));
  if (judgement.settled()) return judgement.result("", "");

  std::vector<Seen> seen;
  std::set<std::string> protocols;
  for (const RankFiles& files : attempt.ranks) {
    const std::size_t captures = successful_captures(judgement, files).size();
    if (captures == 0) {
      judgement.absent(files, "successful capture");
      continue;
    }
    const NcclLog log = read_nccl_log(files.log.value_or(""));
    judgement.confirm(files.rank);  // without lines of NCCL the check becomes unexercised below
    if (log.info_lines == 0) {
      judgement.unexercised(concat("the log of rank ", files.rank,
                                   " has no line of NCCL, which NCCL_DEBUG=INFO asks for"));
      continue;
    }
    seen.push_back({.rank = files.rank, .buffers = log.registered.size(), .captures = captures});
    protocols.insert(log.protocols.begin(), log.protocols.end());
  }
  if (seen.empty()) return judgement.result("", "the same on every rank");
  const auto least = std::ranges::min_element(seen, {}, &Seen::buffers);
  const auto most = std::ranges::max_element(seen, {}, &Seen::buffers);
  if (asked == "0" && most->buffers > 0) {
    judgement.defect(
        {.rank = most->rank,
         .step = std::nullopt,
         .what = "NCCL registered buffers of a graph although NCCL_GRAPH_REGISTER is 0",
         .got = counts_text(seen),
         .want = "none",
         .why =
             "the setting, which is meant to prevent hangs of graphs, did not reach the library"});
  } else if (!equal(seen)) {
    judgement.defect(
        {.rank = least->rank,
         .step = std::nullopt,
         .what = concat("the ranks disagree whether NCCL registers the buffers of the captured ",
                        collective),
         .got = counts_text(seen),
         .want = "as many on every rank",
         .why =
             "a rank that registers waits for addresses that the others never send, so the replay "
             "hangs or reads other memory; NCCL_GRAPH_REGISTER=0 turns the registration off"});
  } else if (most->buffers == 0 && asked != "0" && attempt.axes.text("allocator") == "expandable" &&
             std::ranges::find(kRegistering, collective) != kRegistering.end()) {
    std::string shown;
    for (const std::string& protocol : protocols) shown += (shown.empty() ? "" : ", ") + protocol;
    judgement.unexercised(concat("NCCL registered nothing on any rank, where a captured ",
                                 collective,
                                 " in expandable segments is expected to be registered; it used ",
                                 shown.empty() ? "no known protocol" : shown));
  }
  return judgement.result(most->buffers == 0
                              ? "registered on no rank"
                              : concat("registered on every rank: ", counts_text(seen)),
                          "the same on every rank");
}

}  // namespace graphproof::checks::d27

// D28: the buffers of the single collective, and with placement per_rank the flat buffers of a
// training step, lie in physical memory as axis placement asks; the driver reports where they lie.
// Without this check, a case with placement per_rank could have all buffers at the same place and
// prove nothing.
#include <set>
#include <utility>

#include "suites/checks/attempt/concat.h"
#include "suites/checks/attempt/judgement.h"

namespace graphproof::checks::d28 {
namespace {

using record::PlacementLine;

const PlacementLine* placement_of(Judgement& judgement, const RankFiles& files,
                                  std::string_view arm, std::string_view buffer) {
  for (const PlacementLine* line : judgement.find<PlacementLine>(files, arm))
    if (line->buffer == buffer) return line;
  return nullptr;
}

std::string place_text(const PlacementLine& line) {
  return concat("offset ", line.offset, " of a span of ", line.span_bytes, " bytes",
                line.straddles ? ", across its end" : "");
}

/// Whether the buffer lies as axis placement asks, relative to rank 0's, which is `first`.
bool as_asked(const Attempt& attempt, int rank, const PlacementLine& line,
              const PlacementLine& first) {
  const bool moved = attempt.axes.text("placement") == "per_rank" && rank % 2 == 1;
  // Only expandable segments have borders across which a buffer can lie.
  const bool across =
      moved && attempt.axes.text("allocator") == "expandable" && line.buffer != "pool";
  const bool larger = line.span_bytes > 0 && line.bytes > line.span_bytes;
  return (line.offset != first.offset) == moved && line.straddles == (across || larger);
}

using PlacedBuffers = std::vector<std::pair<std::string_view, std::string_view>>;

/// The arms and their buffers that are placed. A training case has more arms, which depend on the
/// device and are made alike. The pool of an arm's graphs counts as a buffer.
PlacedBuffers placed_buffers(const Attempt& attempt, const Expected& expected) {
  std::vector<std::string_view> arms = {"eager_a"}, buffers;
  const bool collective = attempt.axes.text("model") == "collective";
  if (collective) {
    arms.emplace_back("eager_b");
    buffers = {"input", "result"};
  } else if (expected.trains) {
    buffers = {"gradients"};
    if (attempt.axes.flag("distributed_optimizer")) buffers.emplace_back("parameters");
  }
  if (expected.graph) arms.insert(arms.end(), {"lockstep_eager", "lockstep_graph", "free_graph"});
  if (expected.graph && collective) arms.insert(arms.end(), {"graph_b", "free_eager"});
  if (expected.graph && expected.trains) arms.insert(arms.end(), {"solo_eager", "solo_graph"});
  PlacedBuffers placed;
  for (const std::string_view arm : arms)
    for (const std::string_view buffer : buffers) placed.emplace_back(arm, buffer);
  if (expected.graph && !collective)
    for (const std::string_view arm :
         {"lockstep_graph", "free_graph", expected.trains ? "solo_graph" : "graph_b"})
      placed.emplace_back(arm, "pool");
  return placed;
}

}  // namespace

/// The buffers of every arm have a `placement` line, and lie as axis placement asks.
record::CheckResult placement(Judgement& judgement, const Attempt& attempt) {
  const PlacedBuffers placed = placed_buffers(attempt, judgement.expected());
  const std::string asked = attempt.axes.text("placement");
  std::set<std::string_view> arms;
  for (const auto& [arm, buffer] : placed) arms.insert(arm);
  for (const RankFiles& files : attempt.ranks) {
    for (const auto& [arm, buffer] : placed) {
      const PlacementLine* line = placement_of(judgement, files, arm, buffer);
      const PlacementLine* first = placement_of(judgement, attempt.ranks.front(), arm, buffer);
      if (!line || !first) {
        judgement.absent<PlacementLine>(files, concat("of the ", buffer, " of arm ", arm));
      } else if (as_asked(attempt, files.rank, *line, *first)) {
        judgement.confirm(files.rank);
      } else {
        judgement.defect({.rank = files.rank,
                          .step = std::nullopt,
                          .what = concat("the ", buffer, " of arm ", arm,
                                         " does not lie as placement ", asked, " asks"),
                          .got = concat(place_text(*line), "; rank 0: ", place_text(*first)),
                          .want = asked == "per_rank"
                                      ? "odd ranks elsewhere than even ones, and across a border "
                                        "of an expandable segment"
                                      : "the same offset on every rank, in one piece",
                          .why = "the place of a buffer decides whether NCCL registers it, and a "
                                 "peer must not derive it from its own"});
      }
    }
  }
  return judgement.result(concat("as placement ", asked, " asks, in ", arms.size(), " arms on ",
                                 attempt.ranks.size(), " ranks"),
                          concat("placement ", asked));
}

}  // namespace graphproof::checks::d28

// D74: the graphs of all batch sizes share the memory of the largest one. Captured from the largest
// to the smallest size, each later graph finds the memory that it needs in their pool.
#include <map>
#include <string>
#include <vector>

#include "suites/checks/attempt/arms.h"
#include "suites/checks/attempt/capture.h"
#include "suites/checks/attempt/concat.h"
#include "suites/checks/attempt/judgement.h"

namespace graphproof::checks::d74 {
namespace {

using record::CaptureLine;

/// How much more the smaller sizes may take than the largest, as a share of it: the outputs of
/// single layers, which stay alive, and what does not fit between them.
constexpr double kShareOfSmaller = 0.5;
/// PyTorch's allocator takes memory for small blocks in segments of this size
/// (c10/cuda/CUDACachingAllocator.cpp, kSmallBuffer), and the smaller sizes may begin one more.
constexpr std::int64_t kSegment = std::int64_t{2} << 20;

const std::vector<const char*> kRolloutArms{"lockstep_graph_rollout", "solo_graph_rollout"};

/// "decode.4" of "decode.4.layer0".
std::string batch_of(const std::string& graph) { return graph.substr(0, graph.find(".layer")); }

}  // namespace

/// In every graph arm the captures of all later sizes together take at most half of what those of
/// the first size take, which is the forecast, and on CUDA one segment.
record::CheckResult graph_memory(Judgement& judgement, const Attempt& attempt) {
  const std::int64_t segment = attempt.context.device == "cuda" ? kSegment : 0;
  std::int64_t least = 0, most = 0;
  for (const RankFiles& files : attempt.ranks)
    for (const char* arm : judgement.expected().rollouts > 0 ? kRolloutArms : graph_arms(attempt)) {
      std::string first;
      std::int64_t forecast = 0, others = 0;
      for (const CaptureLine* capture : judgement.find<CaptureLine>(files, arm)) {
        if (!succeeded(*capture)) continue;
        if (first.empty()) first = batch_of(capture->graph);
        (batch_of(capture->graph) == first ? forecast : others) += capture->pool_bytes;
      }
      if (forecast <= 0) {
        judgement.absent<CaptureLine>(files, concat("of arm ", arm, " with memory of its pool"));
        continue;
      }
      const std::int64_t allowed =
          static_cast<std::int64_t>(kShareOfSmaller * static_cast<double>(forecast)) + segment;
      least = least == 0 ? forecast : std::min(least, forecast);
      most = std::max(most, others);
      if (others <= allowed) {
        judgement.confirm(files.rank);
        continue;
      }
      judgement.defect(
          {.rank = files.rank,
           .step = std::nullopt,
           .what = concat("the graphs of arm ", arm,
                          " take more memory than the size that was "
                          "captured first foretells"),
           .got = concat(others, " bytes of all sizes after ", first),
           .want = concat(allowed, " bytes at most; ", first, " took ", forecast),
           .why = "sizes that do not reuse the memory of the largest one add up, and leave less "
                  "for the key-value cache"});
    }
  return judgement.result(
      concat("at most ", most, " bytes beyond the ", least, " or more of the largest size on ",
             attempt.ranks.size(), " ranks"),
      "as much as the largest size foretells");
}

}  // namespace graphproof::checks::d74

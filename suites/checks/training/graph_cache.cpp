// D34: the cache of graphs keeps its bound, and evicted graphs return their memory.
#include <algorithm>
#include <map>

#include "suites/checks/attempt/concat.h"
#include "suites/checks/training/bucket_lengths.h"

namespace graphproof::checks::d34 {

using record::BucketLine;

/// After every step of changing length, graphs exist for at most as many lengths as axis
/// shape_buckets allows, and the graph pools hold no more bytes than the captures of these graphs
/// took.
record::CheckResult graph_cache(Judgement& judgement, const Attempt& attempt) {
  if (!judgement.has_replays()) return judgement.result("", "");
  const auto bound = static_cast<std::size_t>(attempt.axes.integer("shape_buckets"));
  std::int64_t most = 0;
  for (const RankFiles& files : attempt.ranks) {
    std::map<std::int64_t, std::int64_t> bytes;  // of the latest capture, by length
    const auto lines = judgement.lines<BucketLine>(files);
    if (lines.empty()) judgement.absent<BucketLine>(files, "");
    for (const BucketLine& line : lines) {
      if (line.captured_bytes > 0) bytes[line.length] = line.captured_bytes;
      std::int64_t explained = 0;
      for (const std::int64_t one : line.resident) explained += bytes[one];
      most = std::max(most, line.pool_bytes);
      const bool many = line.resident.size() > bound;
      if (!many && line.pool_bytes <= explained && (line.resident.empty() || explained > 0)) {
        judgement.confirm(files.rank);
        continue;
      }
      judgement.defect({.rank = files.rank,
                        .step = line.step,
                        .what = many ? "the cache of graphs holds more lengths than its bound"
                                     : "the memory of evicted graphs was not returned",
                        .got = concat(text_of(line.resident), " resident, ", line.pool_bytes,
                                      " bytes in graph pools"),
                        .want = concat(bound, " lengths at most, and ", explained,
                                       " bytes, which their captures took"),
                        .why = "a job with changing lengths runs out of memory"});
      break;
    }
  }
  return judgement.result(
      concat("at most ", most, " bytes in graph pools on ", attempt.ranks.size(), " ranks"),
      concat(bound, " lengths at most, and no memory of evicted ones"));
}

}  // namespace graphproof::checks::d34

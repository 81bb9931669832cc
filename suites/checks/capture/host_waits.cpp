// D87: what is to be captured does not wait for the device. A capture refuses such a wait with an
// error that names one place of them; eager steps in PyTorch's mode for it name all beforehand.
#include <algorithm>
#include <string>

#include "suites/checks/attempt/concat.h"
#include "suites/checks/attempt/judgement.h"

namespace graphproof::checks::d87 {
namespace {

using record::HostWait;
using record::HostWaitsLine;

std::string places(const HostWaitsLine& line) {
  std::string text;
  for (const HostWait& wait : line.waits)
    if (wait.captured)
      text += concat(text.empty() ? "" : "; ", wait.place, ", ", wait.times,
                     wait.times == 1 ? " time" : " times");
  return text;
}

}  // namespace

/// Arm eager_a has a line about its eager steps: some were watched, and nothing in them that the
/// graphs of the case are captured from waited for the device.
record::CheckResult host_waits(Judgement& judgement, const Attempt& attempt) {
  std::int64_t steps = 0;
  for (const RankFiles& files : attempt.ranks) {
    const auto* line = judgement.first<HostWaitsLine>(files, "eager_a");
    if (!line) {
      judgement.absent<HostWaitsLine>(files, "of arm eager_a");
      continue;
    }
    steps = line->steps;
    if (steps > 0 && std::ranges::none_of(line->waits, &HostWait::captured)) {
      judgement.confirm(files.rank);
      continue;
    }
    judgement.defect(
        {.rank = files.rank,
         .step = std::nullopt,
         .what = "a step that is to be captured waits for the device",
         .got = steps == 0 ? std::string("no step that was watched") : places(*line),
         .want = concat("no place in ", std::max<std::int64_t>(steps, 1), " eager steps or more"),
         .why = "a capture refuses the wait; a step that leaves it out of its capture goes on with "
                "what the host knew then"});
  }
  return judgement.result(
      concat("none in ", steps, " eager steps on ", attempt.ranks.size(), " ranks"),
      "no place that waits for the device");
}

}  // namespace graphproof::checks::d87

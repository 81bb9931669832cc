// D28: the rank uses a single libnccl, of the version that it was compiled with.
#include "suites/checks/attempt/concat.h"
#include "suites/checks/attempt/judgement.h"
#include "suites/checks/process/setting_text.h"

namespace graphproof::checks::d28 {

/// Exactly one libnccl is mapped into each rank, and its version is that of the NCCL header that
/// the program was compiled with. Unexercised on the simulated device.
record::CheckResult one_libnccl(Judgement& judgement, const Attempt& attempt) {
  if (attempt.context.device != "cuda") {
    for (const RankFiles& files : attempt.ranks) judgement.confirm(files.rank);
    judgement.unexercised(concat("device ", attempt.context.device, " loads no libnccl"));
    return judgement.result("", "one libnccl");
  }
  for (const RankFiles& files : attempt.ranks) {
    const record::ConfigLine* config = judgement.first<record::ConfigLine>(files);
    if (!config) {
      judgement.absent<record::ConfigLine>(files, "");
      continue;
    }
    const record::Settings& effective = config->effective;
    const std::string mapped = setting_text(effective, "libnccl_mapped"),
                      loaded = setting_text(effective, "nccl_loaded"),
                      compiled = setting_text(effective, "nccl_compiled");
    if (mapped == "1" && loaded == compiled && !loaded.empty() && loaded != "none") {
      judgement.confirm(files.rank);
      continue;
    }
    judgement.defect(
        {.rank = files.rank,
         .step = std::nullopt,
         .what = concat("rank ", files.rank,
                        " does not run on the one NCCL that it was compiled against"),
         .got = concat(mapped.empty() ? "unknown" : mapped, " libnccl mapped, loaded ",
                       loaded.empty() ? "unknown" : loaded, ", compiled against ",
                       compiled.empty() ? "unknown" : compiled),
         .want = "one, of equal versions",
         .why = "two libraries keep two sets of communicators, and the wrong one answers"});
  }
  return judgement.result(concat("one libnccl on each of ", attempt.ranks.size(), " ranks"),
                          "one libnccl, as compiled against");
}

}  // namespace graphproof::checks::d28

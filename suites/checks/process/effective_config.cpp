// D28: what was asked for is what the libraries report. The libraries are asked, not the
// environment.
#include <algorithm>
#include <array>

#include "suites/checks/attempt/capture.h"
#include "suites/checks/attempt/concat.h"
#include "suites/checks/attempt/judgement.h"
#include "suites/checks/process/setting_text.h"

namespace graphproof::checks::d28 {
namespace {

/// Axes that a library must report back, under the name of the `config` line.
struct Setting {
  std::string_view axis, name;
  bool cuda_only;                // the simulated device has no such thing
  std::string_view unsaid = "";  // a value that runs recorded before there was another do not state
};
constexpr std::array kSettings = {
    Setting{"capture_mode", "capture_mode", false},
    Setting{"autograd_threads", "autograd_threads", false},
    Setting{"allocator", "allocator", true},
    Setting{"nccl_graph_register", "NCCL_GRAPH_REGISTER", true},
    Setting{"nccl_algo", "NCCL_ALGO", true},
    Setting{"nccl_proto", "NCCL_PROTO", true},
    Setting{"comm", "comm", true, "nccl"},
};

// Of MPI those in which another thread may issue a collective.
constexpr std::array<std::string_view, 3> kThreadLevels = {"none", "serialized", "multiple"};

using record::CaptureLine;
using record::ConfigLine;

bool unset(const std::string& value) { return value.empty() || value == "unset"; }

void judge_setting(Judgement& judgement, const Attempt& attempt, const RankFiles& files,
                   const ConfigLine& config, const Setting& setting) {
  const std::string want = attempt.axes.text(setting.axis);
  if (want == "unset") return;  // the suite's own pin, or the library's own choice, may stand
  if (setting.cuda_only && attempt.context.device != "cuda") {
    // What sim has anyway, or what is said of it without a meaning.
    if (want != "default" && want != setting.unsaid)
      judgement.unexercised(
          concat("device ", attempt.context.device, " has no ", setting.axis, " ", want));
    return;
  }
  const std::string asked = setting_text(config.asked, setting.name),
                    effective = setting_text(config.effective, setting.name);
  if (want == setting.unsaid && asked.empty() && effective.empty()) return;
  if (asked == want && effective == want) return;
  judgement.defect(
      {.rank = files.rank,
       .step = std::nullopt,
       .what = concat("rank ", files.rank, " did not run with ", setting.axis, " ", want),
       .got = concat(setting.name, ": asked for ", asked.empty() ? "nothing" : asked,
                     ", effective ", effective.empty() ? "nothing" : effective),
       .want = concat(want, " in both"),
       .why = "the case would be recorded under a setting that it did not have"});
}

/// Whatever else was asked for must be in force too.
void judge_asked(Judgement& judgement, const RankFiles& files, const ConfigLine& config) {
  if (config.asked.empty()) {
    judgement.defect({.rank = files.rank,
                      .step = std::nullopt,
                      .what = concat("the `config` line of rank ", files.rank, " is empty"),
                      .got = concat("asked ", shown(config.asked)),
                      .want = "what was asked and what is in force",
                      .why = "a configuration that nobody reports may be any"});
    return;
  }
  for (const auto& [name, value] : config.asked) {
    const std::string want = setting_text(config.asked, name),
                      got = setting_text(config.effective, name);
    if (unset(want) ? unset(got) : got == want) continue;
    judgement.defect(
        {.rank = files.rank,
         .step = std::nullopt,
         .what = concat("rank ", files.rank, " runs with another ", name, " than asked"),
         .got = got.empty() ? "nothing" : got,
         .want = want,
         .why = "a library ignored or changed the setting"});
  }
}

void judge_fixed(Judgement& judgement, const Attempt& attempt, const RankFiles& files,
                 const ConfigLine& config) {
  const record::Settings& effective = config.effective;
  if (const std::string deterministic = setting_text(effective, "deterministic");
      deterministic != "true") {
    judgement.defect(
        {.rank = files.rank,
         .step = std::nullopt,
         .what = concat("rank ", files.rank, " may run nondeterministic algorithms"),
         .got = concat("deterministic ", deterministic.empty() ? "unknown" : deterministic),
         .want = "deterministic true",
         .why = "arms are compared byte for byte"});
  }
  const std::string threads = setting_text(effective, "mpi_thread_level");
  if (std::ranges::find(kThreadLevels, threads) == kThreadLevels.end()) {
    judgement.defect({.rank = files.rank,
                      .step = std::nullopt,
                      .what = concat("MPI granted rank ", files.rank, " too low a thread level"),
                      .got = threads.empty() ? "unknown" : threads,
                      .want = "serialized or multiple, or none without MPI",
                      .why = "backward may issue collectives from another thread"});
  }
  for (const CaptureLine& capture : judgement.lines<CaptureLine>(files)) {
    if (capture.mode == attempt.axes.text("capture_mode")) continue;
    judgement.defect({.rank = files.rank,
                      .step = std::nullopt,
                      .what = concat(capture_name(capture), " was captured in another mode"),
                      .got = capture.mode,
                      .want = attempt.axes.text("capture_mode"),
                      .why = "the mode decides which threads' unsafe calls invalidate a capture"});
  }
}

}  // namespace

/// What the axes ask for is what was asked of the libraries and what they report.
record::CheckResult effective_config(Judgement& judgement, const Attempt& attempt) {
  for (const RankFiles& files : attempt.ranks) {
    const ConfigLine* config = judgement.first<ConfigLine>(files);
    if (!config) {
      judgement.absent<ConfigLine>(files, "");
      continue;
    }
    judge_asked(judgement, files, *config);
    for (const Setting& setting : kSettings)
      judge_setting(judgement, attempt, files, *config, setting);
    judge_fixed(judgement, attempt, files, *config);
    judgement.confirm(files.rank);
  }
  return judgement.result(concat("as asked on ", attempt.ranks.size(), " ranks"),
                          "what the axes ask for");
}

}  // namespace graphproof::checks::d28

// D28: the libraries report the settings that the case asks for, and none is there twice. The
// values are those that the libraries report, not those in the environment.
#include <algorithm>
#include <array>

#include "suites/checks/attempt/capture.h"
#include "suites/checks/attempt/concat.h"
#include "suites/checks/attempt/judgement.h"
#include "suites/checks/process/setting_text.h"
#include "workloads/engine_traits/engine_traits.h"

namespace graphproof::checks::d28 {
namespace {

/// An axis whose value a library must report, and the name of the setting in the `config` line.
struct Setting {
  std::string_view axis, name;
  bool cuda_only;  // whether the simulated device lacks the setting
  /// The value of old evidence without this setting, which was recorded when there was no other
  /// value.
  std::string_view default_of_old_evidence = "";
};
constexpr std::array kSettings = {
    Setting{"capture_mode", "capture_mode", false},
    Setting{"autograd_threads", "autograd_threads", false},
    Setting{"capture_stream", "capture_stream", false, "non_blocking"},
    Setting{"allocator", "allocator", true},
    Setting{"nccl_graph_register", "NCCL_GRAPH_REGISTER", true},
    Setting{"nccl_algo", "NCCL_ALGO", true},
    Setting{"nccl_proto", "NCCL_PROTO", true},
    Setting{"comm", "comm", true, "nccl"},
};

// The thread levels of MPI at which another thread may issue a collective, and none without MPI.
constexpr std::array<std::string_view, 3> kThreadLevels = {"none", "serialized", "multiple"};

using record::CaptureLine;
using record::ConfigLine;

bool unset(const std::string& value) { return value.empty() || value == "unset"; }

void judge_setting(Judgement& judgement, const Attempt& attempt, const RankFiles& files,
                   const ConfigLine& config, const Setting& setting) {
  const std::string want = attempt.axes.text(setting.axis);
  if (want == "unset") return;  // the suite's own setting or the library's choice applies
  if (setting.cuda_only && attempt.context.device != "cuda") {
    // On sim the default values have no effect.
    if (want != "default" && want != setting.default_of_old_evidence)
      judgement.unexercised(
          concat("device ", attempt.context.device, " has no ", setting.axis, " ", want));
    return;
  }
  const std::string asked = setting_text(config.asked, setting.name),
                    effective = setting_text(config.effective, setting.name);
  if (want == setting.default_of_old_evidence && asked.empty() && effective.empty()) return;
  if (asked == want && effective == want) return;
  judgement.defect(
      {.rank = files.rank,
       .step = std::nullopt,
       .what = concat("rank ", files.rank, " did not run with ", setting.axis, " ", want),
       .got = concat(setting.name, ": asked for ", asked.empty() ? "nothing" : asked,
                     ", effective ", effective.empty() ? "nothing" : effective),
       .want = concat(want, " in both"),
       .why = "the result would be recorded for a setting that was not in effect"});
}

/// Checks that every setting that was asked for is in effect, whether an axis asks for it or not.
void judge_asked(Judgement& judgement, const RankFiles& files, const ConfigLine& config) {
  if (config.asked.empty()) {
    judgement.defect({.rank = files.rank,
                      .step = std::nullopt,
                      .what = concat("the `config` line of rank ", files.rank, " is empty"),
                      .got = concat("asked ", shown(config.asked)),
                      .want = "the settings that were asked for and those in effect",
                      .why = "a configuration that is not reported may be any"});
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

/// Checks that a rank has one cuDNN. Programs that report none have no package that loads another.
void judge_cudnn(Judgement& judgement, const RankFiles& files, const ConfigLine& config) {
  const std::string loaded = setting_text(config.effective, "libcudnn");
  if (loaded.find(" and ") == std::string::npos) return;
  judgement.defect(
      {.rank = files.rank,
       .step = std::nullopt,
       .what = concat("rank ", files.rank, " has more than one libcudnn"),
       .got = loaded,
       .want = "one; set CUDNN_HOME to the folder of PyTorch's, so that Transformer Engine loads "
               "no other",
       .why = "each loads parts of the other, and fused attention ends with "
              "CUDNN_STATUS_SUBLIBRARY_LOADING_FAILED"});
}

/// Checks the settings that are the same in all cases, and the capture mode of each capture.
void judge_fixed(Judgement& judgement, const Attempt& attempt, const RankFiles& files,
                 const ConfigLine& config) {
  const record::Settings& effective = config.effective;
  const std::string wanted =
      attempt.axes.text("deterministic_algorithms") == "on" ? "true" : "false";
  if (const std::string deterministic = setting_text(effective, "deterministic");
      deterministic != wanted) {
    judgement.defect(
        {.rank = files.rank,
         .step = std::nullopt,
         .what = wanted == "true"
                     ? concat("rank ", files.rank, " may run nondeterministic algorithms")
                     : concat("rank ", files.rank, " runs deterministic algorithms alone"),
         .got = concat("deterministic ", deterministic.empty() ? "unknown" : deterministic),
         .want = concat("deterministic ", wanted),
         .why = wanted == "true" ? "arms are compared byte for byte"
                                 : "the kernels that the case is about did not run"});
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
  if (attempt.axes.subject() != "reference" &&
      engines::traits_of(attempt.axes.text("impl")).packages_choose_mode)
    return;
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

/// The libraries were asked for the settings of the case's axes, and report them.
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
    judge_cudnn(judgement, files, *config);
    judgement.confirm(files.rank);
  }
  return judgement.result(concat("as asked on ", attempt.ranks.size(), " ranks"),
                          "what the axes ask for");
}

}  // namespace graphproof::checks::d28

#include "launcher/cli/bringup/climb.h"

#include <fmt/format.h>

#include <string_view>

namespace graphproof::cli {
namespace {

using record::operator""_verdict;

constexpr const char* kPass = "pass";
// The checks that prove a replay, and those that compare its numbers.
constexpr std::string_view kReplay = "D43.replays", kLockstep = "D01.lockstep",
                           kFreeRun = "D01.free_run";

std::string result_of(const RungResult& run) {
  if (run.interrupted) return "interrupted";
  if (run.observed == "pass"_verdict) return kPass;
  if (run.observed.exit_code() == record::ExitCode::product) return "fail";
  if (run.observed.in("infra")) return "infrastructure";
  return "not shown";
}

/// Whether a check of a run passed; what it said otherwise.
std::pair<std::string, std::string> result_of(const RungResult& run, std::string_view check) {
  const auto found = run.checks.find(std::string(check));
  if (found == run.checks.end()) return {"not shown", fmt::format("{} was not asked", check)};
  if (found->second == record::Result::pass) return {kPass, fmt::format("{} passed", check)};
  return {
      found->second == record::Result::fail ? "fail" : "not shown",
      fmt::format("{} {}", check,
                  found->second == record::Result::fail ? "failed" : "found nothing to look at")};
}

std::string memory_of(const RungResult& run) {
  const auto bytes = run.figures.find("extra_memory_bytes");
  if (bytes == run.figures.end()) return "its memory was not measured";
  return fmt::format("graphs hold {:.3g} MiB more memory than eager", bytes->second / (1 << 20));
}

}  // namespace

std::vector<Step> climb(const matrix::Case& target, const matrix::Catalogue& catalogue,
                        const matrix::Machine& machine, const RunRung& run,
                        const std::function<void(const Step&)>& taken) {
  const matrix::Ladder ladder = matrix::ladder_to(target, catalogue, machine);
  std::vector<Step> steps;
  const auto take = [&](Step step) {
    steps.push_back(std::move(step));
    taken(steps.back());
    return steps.back().result == kPass;
  };
  const auto run_step = [&](const std::string& name, const matrix::Case& one, RungResult& result) {
    const std::string case_name = matrix::case_name(catalogue.axes, one);
    if (const auto refusal = catalogue.rules.refusal(one, machine))
      return take({name, "fail",
                   fmt::format("rule {} refuses it: {}; got {}; next: {}", refusal->rule,
                               refusal->what, refusal->got, refusal->next),
                   case_name, ""});
    result = run(one, "bringup: " + name);
    return take({name, result_of(result),
                 fmt::format("{}{}", result.observed.text(),
                             result.reason.empty() ? "" : ": " + result.reason),
                 case_name, result.reference});
  };

  RungResult result;
  if (!run_step("eager is stable", ladder.eager, result)) return steps;

  if (const auto refusal = catalogue.rules.refusal(target, machine)) {
    take({"shapes and options are fixed", "fail",
          fmt::format("rule {} refuses the target: {}; got {}; next: {}", refusal->rule,
                      refusal->what, refusal->got, refusal->next),
          "", ""});
    return steps;
  }
  if (target.values.contains("shape_buckets")) {
    take({"shapes and options are fixed", "fail",
          "shape_buckets is set: lengths change from step to step, and a graph has one length; fix "
          "the length first and add buckets once the rest passes",
          "", ""});
    return steps;
  }
  take({"shapes and options are fixed", kPass, "no rule refuses the target, and lengths are fixed",
        "", ""});

  /// A replay is proven and its numbers compared, in a case that passed as a whole.
  const auto proven = [&](const RungResult& ran) {
    const auto [replay, replay_why] = result_of(ran, kReplay);
    if (!take({"replay is proven", replay, replay_why + "; " + memory_of(ran), "", ran.reference}))
      return false;
    for (const std::string_view check : {kLockstep, kFreeRun})
      if (const auto [compared, why] = result_of(ran, check); compared != kPass)
        return take({"numbers are those of eager", compared, why, "", ran.reference});
    return take({"numbers are those of eager", kPass,
                 fmt::format("{} and {} passed after the capture", kLockstep, kFreeRun), "",
                 ran.reference});
  };
  if (!run_step("narrowest scope: " + ladder.narrow.what, ladder.narrow.test_case, result) ||
      !proven(result))
    return steps;
  for (const matrix::Rung& rung : ladder.wider) {
    if (!run_step("wider: " + rung.what, rung.test_case, result)) return steps;
    // A wider scope that fell back to eager would pass for the wrong reason.
    if (const auto [replay, why] = result_of(result, kReplay); replay != kPass) {
      take({"replay is proven", replay, why, "", result.reference});
      return steps;
    }
  }
  return steps;
}

record::ExitCode exit_code(const std::vector<Step>& steps) {
  const std::string result = steps.empty() ? "not shown" : steps.back().result;
  if (result == kPass) return record::ExitCode::ok;
  if (result == "fail") return record::ExitCode::product;
  if (result == "infrastructure") return record::ExitCode::infrastructure;
  return result == "interrupted" ? record::ExitCode::interrupted : record::ExitCode::coverage;
}

}  // namespace graphproof::cli

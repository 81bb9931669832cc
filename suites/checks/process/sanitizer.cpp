// D45: compute-sanitizer, under which the rank ran, reported no error of a kernel.
#include <algorithm>
#include <string>

#include "suites/checks/attempt/concat.h"
#include "suites/checks/attempt/judgement.h"
#include "suites/checks/process/sanitizer_log.h"
#include "suites/checks/process/setting_text.h"

namespace graphproof::checks::d45 {
namespace {

constexpr std::size_t kShownReports = 3;
constexpr const char* kWant =
    "a log with a summary of 0 errors, and a tool that knew the bounds of the rank's tensors";
constexpr const char* kNext =
    "see compute-sanitizer.log in the case's folder and docs/guide/sanitizer.md";

/// "2 times Invalid __global__ write of size 4 bytes in fill(float *): Address 0x7f.. ..., from
/// ..."
std::string shown(const SanitizerReport& report, std::ptrdiff_t count) {
  std::string text = concat(count > 1 ? concat(count, " times ") : std::string(), report.kind);
  if (!report.kernel.empty()) text += concat(" in ", report.kernel);
  if (!report.address.empty()) text += concat(": ", report.address);
  if (!report.host_frame.empty()) text += concat(", launched by ", report.host_frame);
  return text;
}

/// The first reports, each with the number of those of its kind in its kernel.
std::string shown(const std::vector<SanitizerReport>& reports, std::int64_t errors) {
  std::vector<const SanitizerReport*> kinds;
  const auto same = [](const SanitizerReport& left, const SanitizerReport& right) {
    return left.kind == right.kind && left.kernel == right.kernel;
  };
  for (const SanitizerReport& report : reports)
    if (std::ranges::none_of(kinds, [&](const auto* kind) { return same(*kind, report); }))
      kinds.push_back(&report);
  std::string text = concat(errors, errors == 1 ? " error" : " errors");
  for (std::size_t i = 0; i < std::min(kinds.size(), kShownReports); ++i)
    text += concat(i == 0 ? ": " : "; ",
                   shown(*kinds[i], std::ranges::count_if(reports, [&](const auto& report) {
                     return same(*kinds[i], report);
                   })));
  if (kinds.size() > kShownReports)
    text += concat("; and ", kinds.size() - kShownReports, " other kinds");
  return text;
}

/// Whether the tool looks at the bounds of memory, or at what was written to it.
bool looks_at_memory(std::string_view tool) { return tool == "memcheck" || tool == "initcheck"; }

}  // namespace

/// The log of the tool that the case asks for has its summary, which counts no error but those that
/// are known to be none, and the tool reports no trouble of its own. With memcheck and initcheck
/// the rank says that the tool took the bounds of its tensors. Otherwise the check is unexercised:
/// a log that is missing or cut off never passes.
record::CheckResult sanitizer(Judgement& judgement, const Attempt& attempt) {
  const RankFiles& files = attempt.ranks.front();
  const std::string tool = attempt.axes.text("sanitizer");
  judgement.confirm(files.rank);
  if (!attempt.sanitizer_log) {
    judgement.unexercised("compute-sanitizer left no log", kNext);
    return judgement.result("", kWant);
  }
  const SanitizerLog log = read_sanitizer_log(*attempt.sanitizer_log);
  std::vector<SanitizerReport> reports = log.reports;
  std::erase_if(reports, [&](const SanitizerReport& report) {
    return allowed(report, tool, allowed_reports());
  });
  // Beyond a limit errors are counted and not printed, so they may be any.
  const auto printed = static_cast<std::int64_t>(log.reports.size()),
             found = static_cast<std::int64_t>(reports.size()),
             errors = std::max(log.errors.value_or(0) - (printed - found), found);
  if (errors > 0)
    judgement.defect({.rank = files.rank,
                      .step = std::nullopt,
                      .what = concat("compute-sanitizer (", tool, ") reports errors of kernels"),
                      .got = shown(reports, errors),
                      .want = "0 errors",
                      .why = "a kernel with such an error may change any memory of the rank, or "
                             "compute something else tomorrow"});
  if (!log.trouble.empty())
    judgement.unexercised(concat("compute-sanitizer says: ", log.trouble), kNext);
  if (!log.errors)
    judgement.unexercised("the log of compute-sanitizer ends without its summary", kNext);
  if (looks_at_memory(tool)) {
    const record::ConfigLine* config = judgement.first<record::ConfigLine>(files);
    const std::string knows =
        config ? setting_text(config->effective, "tensor_bounds_known_to") : "";
    if (knows != tool)
      judgement.unexercised(concat("the bounds of the rank's tensors are known to ",
                                   knows.empty() ? "no tool" : knows,
                                   ", so an access to the memory between them would not show"),
                            kNext);
  }
  return judgement.result(concat(tool, ": 0 errors"), kWant);
}

}  // namespace graphproof::checks::d45
